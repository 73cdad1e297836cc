"""Classes that copy the parameters of a model when they are made, and calculate with both later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.moves import MAY_PLACE
from tensortrail.rules.shared.objects import called, names_in, receiver
from tensortrail.rules.view import FunctionNode, Module

_COPIES = ("deepcopy", "clone")
_TOGETHER = frozenset({"add_", "sub_", "lerp_", "mul_"})
_SETS_UP = "__init__"
_OF_MODELS = frozenset({"parameters", "named_parameters", "state_dict"})


def keepers(module: Module) -> Iterator[tuple[ast.ClassDef, frozenset[str]]]:
    """With the names of the methods that take the copies and the parameters together."""
    for cls in module.nodes(ast.ClassDef):
        names = users_of_copies(module, cls)
        if names:
            yield cls, names


def users_of_copies(module: Module, cls: ast.AST) -> frozenset[str]:
    """The methods of a class that copies parameters while it is set up, and moves nothing, which
    take the copies and the parameters together."""
    if not isinstance(cls, ast.ClassDef) or _places(module, cls):
        return frozenset()
    methods = [each for each in cls.body if isinstance(each, ast.FunctionDef)]
    start = next((each for each in methods if each.name == _SETS_UP), None)
    facts = module.class_facts(cls)
    if start is None or facts is None or facts.is_module:
        return frozenset()
    beginning = [start, *(each for each in methods if _is_called(module, start, each.name))]
    kept = {name for each in beginning for name in _copied(module, each)}
    users = [each for each in methods if each not in beginning] if kept else []
    return frozenset(each.name for each in users if _combines(module, each, kept))


def _places(module: Module, cls: ast.ClassDef) -> bool:
    """It moves something or speaks of devices, in its code."""
    if any(module.calls(*MAY_PLACE, "cpu", inside=cls)):
        return True
    names = [each.attr for each in module.nodes(ast.Attribute, cls)]
    names += [each.id for each in module.nodes(ast.Name, cls)]
    names += [each.arg or "" for each in module.nodes(ast.keyword, cls)]
    return any("device" in each for each in names)


def _is_called(module: Module, start: FunctionNode, name: str) -> bool:
    calls = module.calls(name, inside=start)
    return any(module.text(each.func) == f"self.{name}" for each in calls)


def _copied(module: Module, function: FunctionNode) -> Iterator[str]:
    """`shadow` of `self.shadow = deepcopy(model)` and of `self.shadow[name] = p.data.clone()`."""
    for assign in module.nodes(ast.Assign, function):
        target: ast.expr = assign.targets[0]
        while isinstance(target, ast.Subscript):
            target = target.value
        is_own = isinstance(target, ast.Attribute) and module.text(target.value) == "self"
        copies = any(module.calls(*_COPIES, inside=assign))
        if isinstance(target, ast.Attribute) and is_own and copies:
            yield target.attr


def _combines(module: Module, method: FunctionNode, kept: set[str]) -> bool:
    """It takes a copy and the parameters of a model, and calculates with both."""
    read = {each.attr for each in module.nodes(ast.Attribute, method)}
    if not read & kept or not (read & _OF_MODELS or _goes_through_both(module, method, kept)):
        return False
    products = (each for each in module.nodes(ast.BinOp, method) if isinstance(each.op, ast.Mult))
    in_place = (each for each in module.nodes(ast.Call, method) if called(each) in _TOGETHER)
    calls = any(receiver(each) is not None and each.args for each in in_place)
    tensors = any(not isinstance(each.right, ast.Constant) for each in products)
    return calls or tensors


def _goes_through_both(module: Module, method: FunctionNode, kept: set[str]) -> bool:
    """`for copy, weight in zip(self.copies, weights)`, where it is given the weights."""
    given = parameter_names(method) - {"self"}
    return any(
        names_in(call) & given
        and any(each.attr in kept for each in module.nodes(ast.Attribute, call))
        for call in module.calls("zip", inside=method)
    )
