"""What reading an attribute of a value gives, by what the value is."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values import containers
from tensortrail.analyzer.values.evaluating import World
from tensortrail.rules.words import NOWHERE, UNKNOWN_VALUE, Kind, Value


def attribute_of(world: World, node: ast.Attribute, base: Value) -> Value:
    name = node.attr
    if base.is_tensor:
        if name == "device":
            sure = base.sure or _is_weight(node.value)
            return Value(kinds=frozenset({Kind.DEVICE}), sure=sure)
        if name in known.TENSOR_ATTRIBUTES:
            kind = Kind.TENSOR if base.kind is not Kind.WRAPPER_TENSOR else base.kind
            return Value(frozenset({kind}), base.placement, base.sure, shares=(base.path,))
        if name == "_local_tensor":
            return Value(frozenset({Kind.TENSOR}), base.placement, shares=(base.path,))
        if base.may_be(Kind.WRAPPER_TENSOR) and base.cls:
            return world.attribute_of_class(base.cls, name)
        return Value(kinds=containers.OTHER.kinds)
    if base.kind is Kind.DEVICE:
        return Value(kinds=frozenset({Kind.DEVICE_STRING if name == "type" else Kind.OTHER}))
    if base.cls:
        found = world.attribute_of_class(base.cls, name)
        if found.kinds or found.cls:
            return found
    if name in known.WEIGHT_ATTRIBUTES:
        return Value(kinds=frozenset({Kind.PARAMETER}), sure=False, placement=base.placement)
    if name == "device" and base.kind is Kind.MODULE:
        return Value(kinds=frozenset({Kind.DEVICE}), sure=False)
    if name in ("data", "grad") and (base.is_tensor or not base.kinds):
        return Value(kinds=frozenset({Kind.TENSOR}), sure=False)
    if base.kind is Kind.MODULE and name in ("model", "lm_head", "embed_tokens", "encoder"):
        return Value(kinds=frozenset({Kind.MODULE}), sure=False, placement=base.placement)
    placed = base.kind is Kind.MODULE and base.placement is not NOWHERE
    return Value(placement=base.placement) if placed else UNKNOWN_VALUE


def _is_weight(node: ast.expr) -> bool:
    names = known.WEIGHT_ATTRIBUTES | known.TENSOR_ATTRIBUTES
    return isinstance(node, ast.Attribute) and node.attr in names
