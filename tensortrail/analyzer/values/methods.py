"""The value of a call of a method: of tensors, modules and containers."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values import containers
from tensortrail.analyzer.values.command_line import NAMESPACE_VALUE
from tensortrail.analyzer.values.evaluating import Evaluating
from tensortrail.analyzer.values.placements import move_target, placement_of_argument
from tensortrail.analyzer.values.state import State
from tensortrail.rules.shared.moves import MODULE_MOVES
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Owner, Value

_OTHER = containers.OTHER


def value_of_method(
    evaluator: Evaluating, call: ast.Call, func: ast.Attribute, base: Value, state: State
) -> Value | None:
    name = func.attr
    if base.contents is not None:
        added = containers.added_by(name, [evaluator.seen[each] for each in call.args])
        if added is not None:
            containers.add(base, added, state)
        taken = containers.taken_by_method(name, base)
        if taken is not None and (taken.kinds or taken.cls or base.kind is Kind.OTHER):
            return taken
    if base.is_tensor:
        return _tensor_method(evaluator, call, name, base)
    if base.kind is Kind.MODULE or base.cls == "torch.export.ExportedProgram":
        found = _module_method(evaluator, call, name, base, state)
        if found is not None:
            return found
    if name in known.SUBMODULE_METHODS and not base.kinds and base.path:
        path = f"{base.path}.{name}()"
        return Value(frozenset({Kind.MODULE}), sure=False, owner=base.owner, path=path)
    if name == "untyped_storage":
        return Value(frozenset({Kind.STORAGE}), shares=(base.path,) if base.path else ())
    if name == "parse_args" and not base.kinds:
        return NAMESPACE_VALUE
    if name == "module" and not call.args and not base.kinds and base.path:
        return Value(frozenset({Kind.MODULE}), sure=False, owner=Owner.HERE, shares=(base.path,))
    if name == "state_dict":
        shares = (base.path,) if base.path else ()
        return Value(
            frozenset({Kind.STATE_DICT}), sure=base.kind is Kind.MODULE, shares=shares,
            owner=Owner.HERE,
        )  # fmt: skip
    if name in ("copy", "items", "values", "keys") and base.kind is Kind.STATE_DICT:
        return replace(base, path="", origins=()) if name == "copy" else _OTHER
    if name in ("get", "pop") and base.kind is Kind.STATE_DICT:
        return Value(frozenset({Kind.TENSOR}), sure=False)
    if base.kinds:
        if isinstance(func.value, ast.Name) and func.value.id[:1].isupper():
            return None  # of a class
        return None if base.may_be(Kind.UNKNOWN, Kind.MODULE) or base.cls else _plain(name, base)
    if name in MODULE_MOVES:
        place = move_target(evaluator, call, name)
        if place:
            return replace(UNKNOWN_VALUE, placement=place, shares=(base.path,) if base.path else ())
    if name in known.ONLY_TENSOR_METHODS:
        return Value(frozenset({Kind.TENSOR}), base.placement, sure=False, owner=Owner.HERE)
    return None


def _plain(name: str, base: Value) -> Value | None:
    """A method of something that is no tensor or module: text stays text."""
    return _OTHER if base.is_only(Kind.OTHER, Kind.DEVICE_STRING) else None


def _tensor_method(evaluator: Evaluating, call: ast.Call, name: str, base: Value) -> Value:
    if name in known.PLAIN_METHODS or name.startswith("is_"):
        return _OTHER
    if name in ("untyped_storage", "storage"):
        return Value(frozenset({Kind.STORAGE}), base.placement, shares=(base.path,))
    if name in MODULE_MOVES:
        place = move_target(evaluator, call, name) or base.placement
        kinds = base.kinds if base.kinds != {Kind.PARAMETER} else frozenset({Kind.TENSOR})
        return Value(kinds, place, base.sure, base.cls, Owner.HERE, shares=(base.path,))
    if name in known.TENSOR_METHODS:
        device = keyword(call, "device")
        place = placement_of_argument(evaluator, device) if device else base.placement
        wrapper = base.may_be(Kind.WRAPPER_TENSOR) and name in ("detach", "clone")
        kinds = frozenset({Kind.WRAPPER_TENSOR if wrapper else Kind.TENSOR})
        shares = (base.path,) if name in known.VIEW_METHODS and base.path else ()
        cls = base.cls if wrapper else ""
        if name.endswith("_"):
            return replace(base, placement=place)
        return Value(kinds, place, base.sure, cls, Owner.HERE, shares=shares)
    return Value(owner=Owner.HERE)


def _module_method(
    evaluator: Evaluating, call: ast.Call, name: str, base: Value, state: State
) -> Value | None:
    if name in known.SAME_MODULE_METHODS:
        device = move_target(evaluator, call, name)
        if device and base.path:
            evaluator.move(base.path, device, state)
        return replace(base, placement=device or base.placement)
    if name in known.SUBMODULE_METHODS:
        path = f"{base.path}.{name}()" if base.path else ""
        return Value(
            frozenset({Kind.MODULE}), base.placement, base.sure, owner=base.owner, path=path
        )
    if name == "module" and base.cls == "torch.export.ExportedProgram":
        shares = base.shares or ((base.path,) if base.path else ())
        return Value(frozenset({Kind.MODULE}), owner=Owner.HERE, shares=shares)
    return None
