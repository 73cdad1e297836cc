"""The value of a call of a function of torch or Python."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values import containers
from tensortrail.analyzer.values.elements import element_of, element_of_method
from tensortrail.analyzer.values.evaluating import Evaluating
from tensortrail.analyzer.values.placements import placement_of_argument
from tensortrail.analyzer.values.state import State
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.words import NOWHERE, UNKNOWN_VALUE, Kind, Owner, Placement, Value

_OTHER = containers.OTHER


def of_library(evaluator: Evaluating, call: ast.Call, dotted: str, state: State) -> Value | None:
    if dotted in _NAMED:
        return _of_named(evaluator, call, dotted, state)
    if dotted.endswith(".from_pretrained") and known.MODULE_FACTORIES.match(dotted):
        return Value(frozenset({Kind.MODULE}), owner=Owner.HERE, cls=dotted.rpartition(".")[0])
    return None


def _of_named(evaluator: Evaluating, call: ast.Call, dotted: str, state: State) -> Value | None:
    first = evaluator.seen.get(call.args[0], UNKNOWN_VALUE) if call.args else UNKNOWN_VALUE
    if dotted in known.CALL_KINDS:
        kind = known.CALL_KINDS[dotted]
        place = placement_of_argument(evaluator, keyword(call, "device"))
        shares = (first.path,) if kind in (Kind.PARAMETER, Kind.TENSOR) and first.path else ()
        if kind is Kind.PARAMETER:
            place = first.placement
        constant = first.constant if kind is Kind.DEVICE else Value().constant
        return Value(frozenset({kind}), place, owner=Owner.HERE, shares=shares, constant=constant)
    if dotted in known.TENSOR_FUNCTIONS:
        device = keyword(call, "device")
        place = placement_of_argument(evaluator, device)
        if device is None and dotted in known.TORCH_FACTORIES:
            place = NOWHERE if dotted == "torch.as_tensor" else Placement("cpu", call)
        elif device is None and (dotted in known.TORCH_LIKE or first.is_tensor):
            place = first.placement
        return Value(frozenset({Kind.TENSOR}), place, owner=Owner.HERE)
    if dotted in known.SHARING_CALLS and first.path:
        return Value(cls="torch.export.ExportedProgram", owner=Owner.HERE, shares=(first.path,))
    if dotted in ("copy.deepcopy", "copy.copy"):
        return replace(first, owner=Owner.HERE, path="", origins=(), shares=())
    if dotted == "next" and call.args:
        element = element_of(evaluator, call.args[0], state)
        return element if isinstance(element, Value) else _OTHER
    if dotted == "getattr" and len(call.args) > 1:
        name = call.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and first.path:
            path = f"{first.path}.{name.value}"
            return state.values.get(path) or Value(path=path, owner=first.owner)
        return _named_member(evaluator, name, first)
    if dotted == "super" and not call.args:
        return Value(cls=_base_of(evaluator, state))
    if dotted in containers.SEQUENCES | containers.MAPPINGS:
        return _container(evaluator, call, dotted, first, state)
    if dotted == "collections.defaultdict":
        inner = call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""
        each = containers.holding(containers.EMPTY if inner in ("list", "set") else None)
        known_one = [each] if inner in ("list", "set") else []
        return containers.holding(containers.contents_of(known_one, by_key=True))
    if dotted in _PLAIN_CALLS:
        return _OTHER
    return None


def _base_of(evaluator: Evaluating, state: State) -> str:
    """The class that `super()` asks first."""
    own = state.values.get("self") or state.values.get("cls") or UNKNOWN_VALUE
    facts = evaluator.world.class_facts(own.cls) if own.cls else None
    return next(iter(facts.bases), "") if facts is not None else ""


def _container(
    evaluator: Evaluating, call: ast.Call, dotted: str, first: Value, state: State
) -> Value:
    """`list(xs)`, `dict(a=x)`: a container of the same items."""
    if dotted in containers.MAPPINGS:
        if call.args:
            return replace(first, owner=Owner.HERE, path="", origins=()) if first.kinds else _OTHER
        held = [evaluator.seen.get(each.value, UNKNOWN_VALUE) for each in call.keywords]
        return containers.holding(containers.contents_of(held, by_key=True))
    if not call.args:
        return containers.holding(containers.EMPTY)
    element = containers.as_value(element_of(evaluator, call.args[0], state))
    return containers.holding(containers.contents_of([element]))


def _named_member(evaluator: Evaluating, name: ast.expr, owner: Value) -> Value:
    """`getattr(m, name)` where `name` runs over `m.named_parameters()` or the like."""
    for source in evaluator.seen.get(name, UNKNOWN_VALUE).origins:
        call = source
        while isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
            call = call.args[0]  # list(...), sorted(...)
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
            continue
        base = evaluator.seen.get(call.func.value, UNKNOWN_VALUE)
        element = element_of_method(call.func.attr, base)
        if base.path == owner.path and isinstance(element, tuple):
            held = element[-1]
            if isinstance(held, Value) and call.func.attr.startswith("named_"):
                return replace(held, path=f"{owner.path}[{ast.unparse(name)}]")
    return UNKNOWN_VALUE


def parts_of(evaluator: Evaluating, source: ast.expr | None) -> tuple[Value, ...]:
    """What a call of a library gives that returns a tuple of known parts; () for any other."""
    if not isinstance(source, ast.Call):
        return ()
    kinds = known.TUPLE_KINDS.get(evaluator.world.qualified(source.func), ())
    return tuple(Value(frozenset({kind}), owner=Owner.HERE) for kind in kinds)


_PLAIN_CALLS = frozenset(
    (
        "len str repr int float bool isinstance issubclass hasattr callable id type print range "
        "dict list tuple set frozenset sorted enumerate zip map filter format round min max sum "
        "any all abs open hash os.path.join os.path.exists os.environ.get os.getenv "
        "torch.cuda.is_available torch.is_tensor torch.equal torch.allclose torch.Size"
    ).split()
)
_NAMED = frozenset(
    {
        *known.CALL_KINDS, *known.TENSOR_FUNCTIONS, *known.SHARING_CALLS, *containers.SEQUENCES,
        *containers.MAPPINGS, *_PLAIN_CALLS, "copy.deepcopy", "copy.copy", "next", "getattr",
        "super", "collections.defaultdict",
    }
)  # fmt: skip
"""What `_of_named` knows something of: few calls are of these."""
