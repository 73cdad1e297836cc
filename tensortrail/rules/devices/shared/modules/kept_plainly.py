"""Plain attributes of a module that hold tensors which its other methods use as they are."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.modules.attribute_reads import (
    is_used_as_it_is,
)
from tensortrail.rules.devices.shared.modules.moved_by_its_class import is_moved
from tensortrail.rules.devices.shared.modules.other_arm import is_the_other_arm
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.shared.annotations import names_said
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import called, is_self
from tensortrail.rules.shared.placeholders import is_placeholder
from tensortrail.rules.view import FunctionNode

_MADE = frozenset(
    {
        Where.DEFAULT,
        Where.DEVICE,
        Where.HOST,
        Where.LITERAL,
        Where.LOCAL,
        Where.OF,
        Where.STAYS,
        Where.SELF,
    }
)


def kept_tensors(
    module: Module, cls: ast.ClassDef, registered: frozenset[str]
) -> Iterator[tuple[str, list[ast.Attribute]]]:
    """Plain attributes that hold tensors which other methods use as they are."""
    for name, stores in _stores(module, cls).items():
        bound = [each for each in stores if _binds(module, each)]
        if name in registered:
            bound = [each for each in bound if is_the_other_arm(module, cls, name, each)]
        if not all(_may_be_kept(module, each) for each in bound):
            continue
        if not is_used_as_it_is(module, cls, name, bound):
            continue
        if is_moved(module, cls, name) or _is_called(module, cls, name):
            continue
        kept = [each for each in bound if _is_kept_tensor(module, cls, each)]
        makers = {module.function_of(each) for each in kept}
        if kept and all(each in kept or _is_left_out(module, each, makers) for each in bound):
            yield name, kept


def _may_be_kept(module: Module, store: ast.Attribute) -> bool:
    """Seen without a look around: no number, text or layer."""
    value = getattr(module.statement_of(store), "value", None)
    if isinstance(value, ast.Constant):
        return value.value is None
    if isinstance(value, ast.Call):
        name = called(value)
        return not name[:1].isupper() or name.endswith("Tensor")
    return not isinstance(value, (ast.JoinedStr, ast.Compare, ast.Lambda, ast.Dict))


def _is_called(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.net(x)`: a module, which `.to()` moves, or a function."""
    return any(
        isinstance(call := module.parent(node), ast.Call)
        and call.func is node
        and is_self(node.value)
        for node in module.members(name, cls)
    )


def _binds(module: Module, store: ast.Attribute) -> bool:
    """Not `self.name += x`, which gives no other tensor, and not its type alone."""
    statement = module.statement_of(store)
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None
    return not isinstance(statement, ast.AugAssign)


def _is_left_out(module: Module, store: ast.Attribute, makers: set[FunctionNode | None]) -> bool:
    """None in another branch of its making."""
    value = getattr(module.statement_of(store), "value", None)
    is_none = isinstance(value, ast.Constant) and value.value is None
    return is_none and module.function_of(store) in makers


def _stores(module: Module, cls: ast.ClassDef) -> dict[str, list[ast.Attribute]]:
    found: dict[str, list[ast.Attribute]] = {}
    for node in module.nodes(ast.Attribute, cls):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if own and isinstance(node.ctx, ast.Store) and module.class_of(node) is cls:
            found.setdefault(node.attr, []).append(node)
    return found


def _is_kept_tensor(module: Module, cls: ast.ClassDef, store: ast.Attribute) -> bool:
    function = module.function_of(store)
    if function is None or function.name not in module.once(_setting_up, cls):
        return False
    held = held_by(module, store)
    if held is None or held.rank == 0:
        return False
    said = _said_of_argument(module, store)
    if "torch.nn.Parameter" in said and "torch.Tensor" not in said:  # `.to()` moves it
        return False
    if held.what is not What.TENSOR and "torch.Tensor" not in said:
        return False
    if _is_of_another_module(module, store):
        return False
    registered = {"parameter", "buffer"} if held.path else {"parameter"}  # itself, or made of it
    if all(is_placeholder(module, each.by) for each in held.places):
        return False
    return all(each.where in _MADE and each.subject not in registered for each in held.places)


def held_by(module: Module, store: ast.Attribute) -> Held | None:
    function = module.function_of(store)
    return module.places(function).seen.get(store) if function is not None else None


def _said_of_argument(module: Module, store: ast.Attribute) -> Collection[str]:
    """The types that the function names for an argument that is kept: it may be a tensor or
    something else, as in `mean: torch.Tensor | float`."""
    function, value = module.function_of(store), getattr(module.statement_of(store), "value", None)
    if function is None or not isinstance(value, ast.Name):
        return ()
    own = next((each for each in parameters(function) if each.arg == value.id), None)
    return {*names_said(module, own.annotation)} if own is not None and own.annotation else ()


def _is_of_another_module(module: Module, store: ast.Attribute) -> bool:
    """`layer.weight`: who registered it moves it."""
    statement = module.statement_of(store)
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Attribute) and value.attr in ("weight", "bias", "data")


def _setting_up(module: Module, cls: ast.ClassDef) -> set[str]:
    """Methods that set the module up, and those that they call."""
    methods = {each.name: each for each in cls.body if isinstance(each, ast.FunctionDef)}
    found = {name for name, each in methods.items() if sets_up(each)}
    left = list(found)
    while left:
        for call in module.nodes(ast.Call, methods[left.pop()]):
            func = call.func
            own = isinstance(func, ast.Attribute) and module.text(func.value) == "self"
            name = func.attr if isinstance(func, ast.Attribute) and own else ""
            if name in methods and name not in found:
                found.add(name)
                left.append(name)
    return found
