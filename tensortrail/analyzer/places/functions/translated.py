"""What a function holds, said in the terms of the one who calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from tensortrail.analyzer.places.functions.callee import Callee
from tensortrail.patterns import pattern
from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.rules.text_of import text_of

_ELSEWHERE = "a condition in the function called holds"


def translated(held: Held, arguments: dict[str, Held], call: ast.Call, callee: Callee) -> Held:
    if held.what in (What.NUMBER, What.NONE, What.SELF):
        return held
    places: set[Place] = set()
    for place in held.in_order:  # of two that are alike, the first tells what put it there
        if place.given and _holds(place.given, arguments) is False:
            continue  # these arguments never lead there
        found = set(_translate(place, arguments, call, callee))
        if not found:
            places = set()
            break
        places |= found
    parts = held.parts and tuple(translated(x, arguments, call, callee) for x in held.parts)
    each = held.each and translated(held.each, arguments, call, callee)
    what: What = held.what
    rank = held.rank
    own = arguments.get(held.path) or arguments.get(_argument_of(held))
    if own is not None and what is What.UNKNOWN:
        what = own.what
    if own is not None and (own.may_be_scalar or held.path in arguments):
        rank = own.rank
    return replace(
        held, what=what, places=frozenset(places), rank=rank, path="", parts=parts, each=each,
        moved=None, was=frozenset(),
    )  # fmt: skip


def _argument_of(held: Held) -> str:
    """The argument it was made from, if it lies where that one does."""
    return held.only.subject if held.only is not None and held.only.where is Where.OF else ""


def _translate(
    place: Place, arguments: dict[str, Held], call: ast.Call, callee: Callee
) -> Iterator[Place]:
    given = "" if not place.given else _given(place.given, arguments)
    if given is None:
        return
    if place.where in (Where.OF, Where.DEVICE):
        root = place.subject.partition(".")[0].partition("[")[0]
        if root in arguments:
            argument = arguments[root]
            if place.subject == root:
                for each in argument.places:
                    yield replace(each, given=each.given or given)
            elif argument.path:
                path = argument.path + place.subject[len(root) :]
                yield Place(place.where, path, place.by and call, given)
        elif place.where is Where.OF and root == "self":  # of the same object
            yield Place(Where.OF, place.subject, given=given)
        elif place.where is Where.DEVICE and root == "self":
            yield Place(Where.DEVICE, place.subject, call, given)
        elif place.where is Where.DEVICE and not _is_parameter(callee, root):
            yield Place(Where.DEVICE, f"{root} of {text_of(call.func)}", call, given)
        return
    owner = arguments.get("self")
    if owner is not None and owner.what is What.OBJECT:
        kept = place.where in (Where.DEFAULT, Where.HOST) and bool(place.subject)
        if place.where is Where.SELF or (kept and owner.made is None):
            yield Place(Where.UNKNOWN)
            return
        if kept and callee.foreign:
            yield Place(Where.KEPT, place.subject, owner.made, given)
            return
    if place.where is Where.SELF and "self" in arguments:
        for each in arguments["self"].places:  # the object lies where its owner has put it
            own = each.where is Where.SELF
            yield replace(place if own else each, given=each.given or given)
        return
    yield replace(
        place, by=call if callee.foreign and place.by is not None else place.by, given=given
    )


def _is_parameter(callee: Callee, name: str) -> bool:
    given = callee.how.parameters
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return any(each is not None and each.arg == name for each in every)


def _given(condition: str, arguments: dict[str, Held]) -> str | None:
    """The condition where the call stands; None where it is not known."""
    if _holds(condition, arguments):
        return ""
    name, _, rest = condition.removeprefix("not ").partition(" ")
    if rest == "is None" and name not in arguments:
        return "" if not condition.startswith("not ") else "an argument is not passed"
    return _ELSEWHERE


_ASKS = pattern(r"(not )?(?:isinstance\((\w+), (.+)\)|torch\.is_tensor\((\w+)\))")


def _holds(condition: str, arguments: dict[str, Held]) -> bool | None:
    """Whether a condition about the type of an argument holds for what is passed; None if that
    is open."""
    asked = _ASKS.fullmatch(condition)
    if asked is None:
        return None
    turned, instance, classes, tensor = asked.groups()
    held = arguments.get(instance or tensor)
    if held is None or held.what is not What.TENSOR:
        return None
    return (bool(tensor) or "Tensor" in classes) is not bool(turned)
