"""Tensors that are mapped from a file, and the save that is to write them to it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called, is_true, keyword, receiver, root_of
from tensortrail.rules.view import Module
from tensortrail.rules.words import NOT_CONSTANT

_COPIES = frozenset(
    "clone deepcopy to cuda cpu half float double bfloat16 contiguous numpy tolist".split()
)


def saves_of_mapped(module: Module, load: ast.Call, path: ast.expr) -> Iterator[ast.Call]:
    """The saves to the path that is mapped, of what holds its tensors."""
    statement = module.parent(load)
    if not isinstance(statement, ast.Assign):
        return
    names = _names(module, path)
    holders = set(_bound(statement))
    for node in module.later(statement, ast.AST):
        if isinstance(node, ast.Assign):
            bound = set(_bound(node))
            if bound & names:
                return
            holders = holders | bound if _holds(module, node.value, holders) else holders - bound
        elif isinstance(node, ast.Call):
            holders |= _assigned(module, node, holders)
            what = module.argument(node, 0, "obj")
            if what is not None and _saves_to(module, node, path) and _holds(module, what, holders):
                yield node


def _bound(assign: ast.Assign) -> Iterator[str]:
    for target in assign.targets:
        yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name))


def _names(module: Module, node: ast.expr) -> set[str]:
    own = {node.id} if isinstance(node, ast.Name) else set()
    return own | {each.id for each in module.nodes(ast.Name, node)}


def _holds(module: Module, value: ast.expr, holders: set[str]) -> bool:
    """The value has the same memory, as far as nothing in it makes a copy."""
    calls = (*module.nodes(ast.Call, value), *([value] if isinstance(value, ast.Call) else []))
    copied = any(called(each) in _COPIES for each in calls)
    return not copied and not holders.isdisjoint(_names(module, value))


def _assigned(module: Module, call: ast.Call, holders: set[str]) -> set[str]:
    """`model` of `model.load_state_dict(weights, assign=True)`."""
    owner = receiver(call)
    if called(call) != "load_state_dict" or owner is None or not is_true(keyword(call, "assign")):
        return set()
    root = root_of(owner)
    taken = call.args and _holds(module, call.args[0], holders)
    return {root.id} if taken and isinstance(root, ast.Name) else set()


def _saves_to(module: Module, call: ast.Call, path: ast.expr) -> bool:
    target = module.argument(call, 1, "f")
    if target is None or module.qualified(call.func) != "torch.save":
        return False
    constants = [module.value_of(each).constant for each in (target, path)]
    is_one = constants[0] is not NOT_CONSTANT and constants[0] == constants[1]
    return is_one or ast.dump(target) == ast.dump(path)
