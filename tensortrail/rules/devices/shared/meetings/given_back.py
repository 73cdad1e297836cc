"""What a function gives back on its paths, and where each answer lies."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules import Module
from tensortrail.rules.devices.shared.meetings.following import follows
from tensortrail.rules.places import FunctionPlaces, Held, Place, What, Where, opposite
from tensortrail.rules.shared.none_here import asked_for_none
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Guard

_ABOUT_DEVICES = pattern(r"device|cuda|gpu|cpu|meta|offload|fake|trac", re.IGNORECASE)


def only_raises(made: ast.AST) -> bool:
    """`torch.zeros()`, which nothing tells a size."""
    return isinstance(made, ast.Call) and not (made.args or made.keywords)


Answer = tuple[ast.expr, Held]


def by_position(
    module: Module, function: FunctionNode, places: FunctionPlaces
) -> Iterator[list[Answer]]:
    """What the function gives back on its paths: as a whole, or member by member."""
    found: dict[tuple[int, int], list[Answer]] = {}
    for statement in module.nodes(ast.Return, function):
        if statement.value is None or module.function_of(statement) is not function:
            continue
        for value in _alternatives(statement.value):
            members = value.elts if isinstance(value, ast.Tuple) else [value]
            for index, each in enumerate(members):
                for one in _alternatives(each):
                    held = places.seen.get(one)
                    if held is not None:
                        found.setdefault((index, len(members)), []).append((one, held))
    yield from found.values()


def _alternatives(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.IfExp):
        yield from _alternatives(value.body)
        yield from _alternatives(value.orelse)
    else:
        yield value


def where_others_are(
    module: Module, function: FunctionNode, answers: list[Answer]
) -> tuple[ast.expr, Place] | None:
    """An answer that lies where the caller wants it, with its place."""
    for node, held in answers:
        place = follows(module, function, held) or _of_argument(function, held)
        if place is None or place.given or _asks_for_the_type(module, node):
            continue
        if not _is_new_parameter(module, node):
            return node, place
    return None


def _is_new_parameter(module: Module, node: ast.expr) -> bool:
    """`nn.Parameter(x)` lies where `x` does until a module has it."""
    made = [node] if isinstance(node, ast.Call) else module.value_of(node).origins
    names = [module.qualified(each) for each in made if isinstance(each, ast.Call)]
    return any(name.endswith((".Parameter", ".Buffer")) for name in names)


def _of_argument(function: FunctionNode, held: Held) -> Place | None:
    """Its place, if it is the one of a tensor that the caller passes, as far as is known."""
    place = held.only
    if held.what is not What.TENSOR or place is None:
        return None
    return place if _is_of_argument(function, place) else None


def _is_of_argument(function: FunctionNode, place: Place) -> bool:
    plain = "[" not in place.subject and not _ABOUT_DEVICES.search(place.subject)
    return place.where is Where.OF and plain and function.name != "__getitem__"


def on_the_default(
    held: Held, other: tuple[ast.expr, Place] | None
) -> tuple[ast.AST, ast.AST, Place] | None:
    """The factory that made it, if it is there on every path, and the other answer."""
    place = held.only
    if held.what is not What.TENSOR or place is None or place.given or other is None:
        return None
    is_made = place.where is Where.DEFAULT and place.by is not None
    return (place.by, *other) if is_made and place.by is not None else None


def on_one_path(
    function: FunctionNode, node: ast.expr, held: Held
) -> tuple[ast.AST, ast.AST, Place] | None:
    """The same for a name that was bound on two paths, or made anew under several conditions."""
    elsewhere = [each for each in held.in_order if each.where is not Where.DEFAULT]
    if held.what is not What.TENSOR or len(elsewhere) != 1:
        return None
    instead = elsewhere[0]
    for place in held.in_order:
        if place is instead or place.by is None:
            continue
        apart = bool(place.given) and instead.given == opposite(place.given)
        if f"{instead.subject} is None" in (place.given, instead.given):
            continue  # there is nothing that the answer could follow
        if apart and not (_ABOUT_DEVICES.search(place.given) or "isinstance" in place.given):
            sure = instead.where in (Where.SELF, Where.DEVICE) or _is_of_argument(function, instead)
            return (place.by, instead.by or node, instead) if sure else None
    return None


def is_chosen(module: Module, node: ast.expr) -> bool:
    """A condition about devices leads here, or one about the type of an argument."""
    by_device = any(_ABOUT_DEVICES.search(each.text) for each in module.guards_of(node))
    return by_device or _asks_for_the_type(module, node)


def has_none_of(module: Module, node: ast.expr, place: Place) -> bool:
    """The tensor that the other answer follows is None where this one is given, or the list that
    holds it is empty."""
    return any(
        _is_none_here(module, each, place.subject) or each.text == f"not {place.subject}"
        for each in module.guards_of(node)
    )


def _is_none_here(module: Module, guard: Guard, name: str) -> bool:
    asked = asked_for_none(guard)
    return asked is not None and asked[1] and module.text(asked[0]) == name


def _asks_for_the_type(module: Module, node: ast.expr) -> bool:
    return any(
        any(word in each.text for word in ("isinstance", "is_tensor", "type("))
        and not isinstance(module.parent(each.test), ast.Assert)
        for each in module.guards_of(node)
    )
