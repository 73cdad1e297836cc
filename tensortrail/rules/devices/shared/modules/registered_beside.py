"""Tensors that a function puts into a plain attribute of a module, beside buffers that it registers
with that module."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.places import What
from tensortrail.rules.view import FunctionNode, Module

_TEMPORARY = frozenset({"data", "grad"})


def beside_registered(module: Module) -> Iterator[tuple[str, ast.Attribute, Sequence[ast.Call]]]:
    registered: dict[tuple[FunctionNode, str], list[ast.Call]] = {}
    for call in module.calls("register_buffer"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        function = module.function_of(call)
        if function is not None and isinstance(owner, ast.Name) and owner.id != "self":
            registered.setdefault((function, owner.id), []).append(call)
    for (function, owner_name), calls in registered.items():
        for store in module.nodes(ast.Attribute, function):
            if _is_plain_tensor(module, function, store, owner_name):
                yield store.attr, store, calls


def _is_plain_tensor(
    module: Module, function: FunctionNode, store: ast.Attribute, owner: str
) -> bool:
    own = isinstance(store.value, ast.Name) and store.value.id == owner
    if not own or not isinstance(store.ctx, ast.Store) or store.attr in _TEMPORARY:
        return False
    statement = module.statement_of(store)
    value = statement.value if isinstance(statement, ast.Assign) else None
    if value is None or isinstance(value, ast.Constant):
        return False
    held = module.places(function).seen.get(store) or module.places(function).seen.get(value)
    if held is None or held.what is not What.TENSOR or held.may_be_scalar:
        return False
    return all(each.subject != "parameter" for each in held.places)
