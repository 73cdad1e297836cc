"""State dicts of wrappers, whose keys carry the name under which the wrapper holds its module."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.shared.moves import GIVES_ITSELF
from tensortrail.rules.shared.objects import called, given, is_self, receiver, root_of
from tensortrail.rules.shared.parallel_wrappers import AVERAGING, COPYING
from tensortrail.rules.shared.prepared import is_prepared
from tensortrail.rules.state_files import UNWRAPS, WRITERS

PREFIXES = {
    "torch.compile": "_orig_mod.",
    **dict.fromkeys((*COPYING, *AVERAGING), "module."),
}
"""By wrapper: what the names of its state dict begin with."""


def wrapped_by(module: Module, node: ast.expr) -> ast.Call | None:
    """The call that made the wrapper, if it is one on every path."""
    if isinstance(node, ast.Attribute) and is_self(node.value):
        return _kept_by_class(module, node)
    if not isinstance(node, ast.Name):
        return None
    origins = module.value_of(node).origins
    made = [wrapper for each in origins if (wrapper := _wrapper(module, each)) is not None]
    return made[0] if made and len(made) == len(origins) else None


def prefix_by(module: Module, made: ast.Call) -> str:
    """What the wrapper puts before the keys."""
    return PREFIXES.get(module.qualified(made.func), "module.")


def _kept_by_class(module: Module, attribute: ast.Attribute) -> ast.Call | None:
    """The wrapper that one method of the class stores there, last and under no condition."""
    cls = module.class_of(attribute)
    everywhere = module.members(attribute.attr, inside=cls) if cls is not None else ()
    stores = [each for each in everywhere if isinstance(each.ctx, ast.Store)]
    if len({module.function_of(each) for each in stores}) != 1 or module.guards_of(stores[-1]):
        return None
    statement = module.parent(stores[-1])
    if isinstance(statement, ast.Tuple):  # `self.model, self.optimizer = accelerator.prepare(...)`
        statement = module.parent(statement)
    value = statement.value if isinstance(statement, ast.Assign) else None
    if isinstance(value, ast.Name):
        return wrapped_by(module, value)
    return _wrapper(module, value) if value is not None else None


def _wrapper(module: Module, node: ast.AST) -> ast.Call | None:
    """`torch.compile(net)` of `torch.compile(net).to("cuda").train()`."""
    while isinstance(node, ast.Call):
        if module.qualified(node.func) in PREFIXES or is_prepared(module, node):
            return node
        owner = receiver(node)
        if owner is None or called(node) not in GIVES_ITSELF:
            return None
        node = owner
    return None


def writer_of(module: Module, call: ast.expr) -> ast.Call | None:
    """The call that writes the result into a file, at once or through a variable."""
    for up in module.ancestors(call):
        if isinstance(up, ast.Call) and called(up) in WRITERS:
            return up
    assign = module.statement_of(call)
    if not isinstance(assign, ast.Assign) or not _holds(assign.value, call):
        return None
    target = root_of(assign.targets[0])
    if not isinstance(target, ast.Name) or is_self(target):
        return None
    name = target.id
    writers = (each for each in module.later(assign, ast.Call) if called(each) in WRITERS)
    return next((each for each in writers if _is_given(each, name)), None)


def _holds(value: ast.expr, call: ast.expr) -> bool:
    """The call itself, or a mapping that is written out with it: `{"model": m.state_dict()}`."""
    members = value.values if isinstance(value, ast.Dict) else [value]
    if isinstance(value, ast.Call) and called(value) in ("dict", "OrderedDict"):
        members = [each.value for each in value.keywords]
    return any(each is call or _is_nested(each, call) for each in members)


def _is_nested(value: ast.expr, call: ast.expr) -> bool:
    return isinstance(value, ast.Dict) and _holds(value, call)


def _is_given(writer: ast.Call, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name
        for argument in given(writer)
        for each in ast.walk(argument)
    )


def renames_keys(module: Module, call: ast.Call) -> bool:
    function = module.function_of(call)
    text = module.text(function) if function is not None else ""
    return any(word in text for word in UNWRAPS)


def cuts_keys(module: Module, call: ast.Call, prefix: str) -> bool:
    """The function of the call renames keys, or cuts as much off them as the prefix is long."""
    return renames_keys(module, call) or any(
        isinstance(each.slice, ast.Slice)
        and isinstance(each.slice.lower, ast.Constant)
        and each.slice.lower.value == len(prefix)
        for each in module.nodes(ast.Subscript, module.function_of(call))
    )
