"""Dicts that the load of a distributed checkpoint is given: an empty one, one with numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import is_before
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_LOADS = frozenset({"load", "load_state_dict"})
_OF = "torch.distributed.checkpoint"


def empty_given(module: Module, call: ast.Call, given: ast.Name) -> ast.Assign | None:
    """The assignment that made it empty, if nothing has been put into it by then."""
    if not _is_load(module, call):
        return None
    function = module.function_of(call)
    uses = [each for each in module.uses(given.id, function) if is_before(each, call)]
    stored = [each for each in uses if isinstance(each.ctx, ast.Store)]
    if len(stored) != 1 or len(uses) != 1:
        return None
    made = module.parent(stored[0])
    if isinstance(made, ast.Assign) and _is_empty(module, made.value):
        return made
    return None


def numbers_not_read(
    module: Module, call: ast.Call, given: ast.Name
) -> Iterator[tuple[ast.Name, ast.Name]]:
    """`step` of `{"step": step}`, a number, and where it is used after the load, though the loaded
    number is in the dict, which nobody asks for it."""
    made = behind(module, given)
    if not _is_load(module, call) or not isinstance(made, ast.Dict):
        return
    function = module.function_of(call)
    uses = module.uses(given.id, function)
    reads = [each for each in uses if is_before(call, each) and each is not given]
    asked = {
        up.slice.value
        for each in reads
        if isinstance(up := module.parent(each), ast.Subscript)
        and isinstance(up.slice, ast.Constant)
    }
    others = [e for e in reads if not isinstance(module.parent(e), ast.Subscript)]
    for key, value in zip(made.keys, made.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(value, ast.Name) or others:
            continue
        number = behind(module, value)
        known = isinstance(number, ast.Constant) and type(number.value) in (int, float)
        if not known or key.value in asked:
            continue
        use = _read_after(module, call, value.id)
        if use is not None:
            yield value, use


def _read_after(module: Module, call: ast.Call, name: str) -> ast.Name | None:
    """The first use after the call, if the name is not given another value before it."""
    uses = [e for e in module.uses(name, module.function_of(call)) if is_before(call, e)]
    uses.sort(key=lambda e: (module.statement_of(e).lineno, isinstance(e.ctx, ast.Store)))
    return uses[0] if uses and isinstance(uses[0].ctx, ast.Load) else None


def _is_load(module: Module, call: ast.Call) -> bool:
    name = module.qualified(call.func)
    return name.startswith(f"{_OF}.") and name.rpartition(".")[2] in _LOADS


def _is_empty(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        plain = module.qualified(value.func) in ("dict", "collections.OrderedDict")
        return plain and not value.args and not value.keywords
    return isinstance(value, ast.Dict) and not value.keys
