"""What a function does with what it loads: as weights or state, or moved to a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules.view import Module

_TAKES_TENSORS = frozenset({"load_state_dict", "items", "values", "update", "state_dict", "to"})
_WEIGHTS = pattern(r"(^|_)(state|model|net|weight|param|optim|ema|embed|tensor)")
"""Keys under which tensors lie in a file."""


def used_as_state(module: Module, call: ast.Call) -> bool:
    """What is loaded is taken as weights or state, or moved on to a device."""
    above = module.parent(call)
    if _takes_tensors(module, call, above):
        return True
    if not isinstance(above, ast.Assign):
        return False
    names = {each.id for each in ast.walk(above.targets[0]) if isinstance(each, ast.Name)}
    uses = [each for each in module.later(above, ast.Name) if each.id in names]
    return any(_takes_tensors(module, each, module.parent(each)) for each in uses) or (
        any(_is_by_variable_key(module, each) for each in uses)
        and any(_loads_state(each) for each in module.later(above, ast.Call))
    )


def _takes_tensors(module: Module, node: ast.expr, above: ast.AST | None) -> bool:
    taker = module.text(above.func) if isinstance(above, ast.Call) and node in above.args else ""
    if taker.rpartition(".")[2].endswith("state_dict"):
        return True
    if isinstance(above, ast.Subscript) and above.value is node:
        key = above.slice.value if isinstance(above.slice, ast.Constant) else None
        return isinstance(key, str) and bool(_WEIGHTS.search(key))
    if isinstance(above, ast.Attribute):
        return above.attr in _TAKES_TENSORS
    return any(_is_moved(module, each) for each in _built_of(module, node))


def _built_of(module: Module, node: ast.AST) -> Iterator[ast.Call]:
    """`TensorFrame(**node)`, `Net(weights=node)`, `Data(node)`."""
    above = module.parent(node)
    if isinstance(above, (ast.keyword, ast.Starred)):
        node, above = above, module.parent(above)
    if isinstance(above, ast.Call) and node in (*above.args, *above.keywords):
        yield above


def _is_moved(module: Module, made: ast.Call) -> bool:
    above = module.parent(made)
    return isinstance(above, ast.Attribute) and above.attr == "to"


def _is_by_variable_key(module: Module, node: ast.Name) -> bool:
    """`loaded[key]`: each of its entries is taken."""
    above = module.parent(node)
    return (
        isinstance(above, ast.Subscript)
        and above.value is node
        and not isinstance(above.slice, ast.Constant)
    )


def _loads_state(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
