"""What the attribute of a value is, and where: of tensors, modules, plain objects and `self`."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.attributes.settings import is_settings
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.objects import attribute_of_object
from tensortrail.analyzer.places.held.elements import is_output
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import member
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import NUMBER, UNKNOWN_HELD, Held, Place, What, Where
from tensortrail.rules.text_of import text_of


def value_of_attribute(world_of: Evaluating, node: ast.Attribute, env: Environment) -> Held:
    base = world_of.value(node.value, env)
    if base.what is What.SELF:
        return _of_self(world_of, node.attr, env)
    if node.attr in names("plain", "attributes") or _is_a_number(world_of, node):
        return NUMBER
    if node.attr == "device" and base.what is not What.BOX:
        asked = Place(Where.DEVICE, text_of(node), node)
        unknown = Place(Where.SELF) if base.what is What.MODULE else asked
        known = {each for each in base.places if each.where is not Where.LOCAL}
        if base.what is What.UNKNOWN and is_settings(world_of.world.tree, node.value):
            known = {asked}
        return Held(What.DEVICE, frozenset(known or {unknown}))
    if base.what is What.TENSOR:
        of_output = is_output(base) and node.attr in names("outputs", "attributes")
        kept = of_output or node.attr in names("keeps", "attributes")
        return base if kept else UNKNOWN_HELD
    if base.what is What.MODULE:
        return _of_module(world_of, node.attr, base)
    if base.what is What.OBJECT:
        return attribute_of_object(world_of.world, base, node.attr)
    if base.what is What.BOX:
        in_mapping = node.attr in names("mappings", "attributes")
        return member(base) if in_mapping else UNKNOWN_HELD
    if base.what is What.UNKNOWN and base.path and base.places:
        path = f"{base.path}.{node.attr}"
        if all(each.where is Where.OF for each in base.places):
            return Held(What.UNKNOWN, frozenset({Place(Where.OF, path)}), path=path)
    return UNKNOWN_HELD


def _is_a_number(world_of: Evaluating, node: ast.Attribute) -> bool:
    """`math.pi`, `numpy.inf`: written in a library that makes no tensors."""
    return world_of.world.qualified(node) in names("plain", "constants")


def _of_module(world_of: Evaluating, name: str, module: Held) -> Held:
    path = f"{module.path}.{name}"
    if name in ("weight", "bias") and module.cls in ("leaf", ""):
        return Held(What.TENSOR, module.places, path=path)
    if module.cls in ("leaf", "box", "bare", ""):
        return UNKNOWN_HELD
    found = world_of.world.attribute_of(module.cls, name)
    inside = found.what in (What.TENSOR, What.MODULE) and all(
        each.where in (Where.SELF, Where.STAYS) for each in found.places
    )
    return replace(found, path=path) if inside else UNKNOWN_HELD


def _of_self(world_of: Evaluating, name: str, env: Environment) -> Held:
    path = f"self.{name}"
    known = env.values.get(path)
    if known is not None:
        return known
    if world_of.cls is None:
        return UNKNOWN_HELD
    found = world_of.world.attribute(world_of.cls, name)
    if name == "device" and found.what not in (What.TENSOR, What.NUMBER):
        if found.what is What.DEVICE and found.places:
            return found
        of_module = world_of.world.is_module(world_of.cls)
        own = Place(Where.SELF) if of_module else Place(Where.DEVICE, path)
        return Held(What.DEVICE, frozenset({own}))
    return found if found.path else replace(found, path=path)
