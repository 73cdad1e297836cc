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
    uses = list(_uses(module, call))
    return any(_takes_tensors(module, each, module.parent(each)) for each in uses) or (
        any(_is_by_variable_key(module, each) for each in uses)
        and any(_loads_state(each) for each in module.later(call, ast.Call))
    )


def weights_by_key(module: Module, call: ast.Call) -> Iterator[ast.Subscript]:
    """`loaded["state_dict"]`: the file holds more beside the weights, as one of a training does."""
    for each in _uses(module, call):
        above = module.parent(each)
        if isinstance(above, ast.Subscript) and _is_by_key_of_weights(above, each):
            yield above


def _uses(module: Module, call: ast.Call) -> Iterator[ast.expr]:
    """What is loaded: at once, and by the names it is bound to."""
    yield call
    above = module.parent(call)
    if isinstance(above, ast.Assign):
        names = {each.id for each in ast.walk(above.targets[0]) if isinstance(each, ast.Name)}
        yield from (each for each in module.later(above, ast.Name) if each.id in names)


def _takes_tensors(module: Module, node: ast.expr, above: ast.AST | None) -> bool:
    taker = module.text(above.func) if isinstance(above, ast.Call) and node in above.args else ""
    if taker.rpartition(".")[2].endswith("state_dict"):
        return True
    if isinstance(above, ast.Subscript):
        return _is_by_key_of_weights(above, node)
    if isinstance(above, ast.Attribute):
        return above.attr in _TAKES_TENSORS
    return any(_is_moved(module, each) for each in _built_of(module, node))


def _is_by_key_of_weights(above: ast.Subscript, node: ast.expr) -> bool:
    key = above.slice.value if isinstance(above.slice, ast.Constant) else None
    return above.value is node and isinstance(key, str) and bool(_WEIGHTS.search(key))


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


def _is_by_variable_key(module: Module, node: ast.expr) -> bool:
    """`loaded[key]`: each of its entries is taken."""
    above = module.parent(node)
    return (
        isinstance(above, ast.Subscript)
        and above.value is node
        and not isinstance(above.slice, ast.Constant)
    )


def _loads_state(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
