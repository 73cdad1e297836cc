"""What an object of a plain class keeps: tensors that stay where the class made them."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.calls.called import Called
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.modules import of_callee
from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import UNKNOWN_HELD, Held, Place, What, Where

_MADE = (Where.DEFAULT, Where.HOST)


def attribute_of_object(world: World, owner: Held, name: str) -> Held:
    """What is read as `owner.name`."""
    if not owner.cls or name in world.tree.once(_stored_from_outside, world.tree.root):
        return UNKNOWN_HELD
    found = world.attribute_of(owner.cls, name)
    path = f"{owner.path}.{name}" if owner.path else ""
    if found.what in (What.NUMBER, What.NONE):
        return found
    if found.what is What.OBJECT:  # made with its owner
        return replace(found, made=owner.made, path=path)
    stays = owner.made is not None and all(
        each.where in _MADE and not each.given for each in found.places
    )
    if found.what is What.TENSOR and found.places and stays:
        places = frozenset(_kept(each, name, owner) for each in found.places)
        return Held(What.TENSOR, places, found.rank)
    return UNKNOWN_HELD


def _kept(place: Place, name: str, owner: Held) -> Place:
    """One of this file is known by the line that made it, one of another by its owner's."""
    return place if place.by is not None else Place(Where.KEPT, name, owner.made)


def method_of_object(
    world_of: Evaluating, called: Called, owner: Held, name: str, env: Environment
) -> Held | None:
    """What `owner.name(...)` gives; None if that is not known."""
    callee = world_of.world.callee_of(owner.cls, name) if owner.cls else None
    if callee is None:
        _forget(called.node, env)
        return None
    return of_callee(world_of, called, callee, owner)


def _forget(call: ast.Call, env: Environment) -> None:
    """A method that is not known may move what the object keeps."""
    func = call.func
    root = func.value if isinstance(func, ast.Attribute) else func
    held = env.values.get(root.id) if isinstance(root, ast.Name) else None
    if isinstance(root, ast.Name) and held is not None:
        env.values[root.id] = replace(held, made=None)


def _stored_from_outside(tree: Tree, root: ast.AST) -> frozenset[str]:
    """Names of attributes that the file assigns to anything but `self`."""
    return frozenset(
        each.attr
        for each in tree.nodes(ast.Attribute)
        if isinstance(each.ctx, ast.Store) and getattr(each.value, "id", "") != "self"
    )
