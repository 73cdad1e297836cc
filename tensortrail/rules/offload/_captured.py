"""Weights that are read from a module before its hook has brought them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import called, name_of, receiver
from tensortrail.rules.shared.values import reads_values

_CONTEXTS = ("align_module_device", "align_modules", "onload_module", "align_module")


def onloads(module: Module) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Statements that bring the weights of a module, and that module."""
    for call in module.calls("pre_forward"):
        owner = receiver(call)
        hooked = isinstance(owner, ast.Attribute) and owner.attr == "_hf_hook"
        if hooked and isinstance(owner, ast.Attribute):
            yield module.statement_of(call), owner.value
    for block in module.nodes(ast.With):
        for item in block.items:
            context = item.context_expr
            if isinstance(context, ast.Call) and called(context) in _CONTEXTS and context.args:
                yield block, context.args[0]


def captured(
    module: Module, onload: ast.stmt, subject: ast.expr
) -> Iterator[tuple[ast.Assign, ast.Name]]:
    """Variables bound to an attribute of the module before, and where they are used after."""
    name = name_of(module, subject)
    for assign in module.earlier(onload, ast.Assign):
        target = assign.targets[0]
        if isinstance(target, ast.Name) and _reads(module, assign.value, name):
            use = _first_use(module, onload, target.id)
            if use is not None:
                yield assign, use


def _reads(module: Module, value: ast.expr, name: str) -> bool:
    """`m.weight`, `m.weight.data`, `getattr(m, "weight", None)`: a parameter or buffer."""
    if isinstance(value, ast.Call) and called(value) == "getattr" and len(value.args) > 1:
        said = value.args[1]
        constant = said.value if isinstance(said, ast.Constant) else ""
        return name_of(module, value.args[0]) == name and _is_weight(str(constant))
    if isinstance(value, ast.Attribute) and value.attr == "data":
        value = value.value
    if not isinstance(value, ast.Attribute) or name_of(module, value.value) != name:
        return False
    return _is_weight(value.attr)


def _is_weight(attribute: str) -> bool:
    endings = ("weight", "bias", "g_idx", "scale", "zero_point", "zeros")
    return not attribute.startswith("__") and attribute.endswith(endings)


def _first_use(module: Module, onload: ast.stmt, name: str) -> ast.Name | None:
    """Where its values are needed while the weights are there, or after it."""
    inside = module.nodes(ast.Name, onload) if isinstance(onload, ast.With) else ()
    for use in (*inside, *module.later(onload, ast.Name)):
        if use.id != name:
            continue
        if not isinstance(use.ctx, ast.Load):
            return None
        if reads_values(module, use):
            return use
    return None
