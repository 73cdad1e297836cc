"""What a function gives back, said in the terms of the one who calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.rules.view import FunctionNode


def from_callee(
    held: Held,
    function: FunctionNode,
    is_method: bool,
    given: Sequence[Held],
    named: dict[str, Held],
    call: ast.Call,
    foreign: bool,
) -> Held:
    """`foreign`: the function stands in another file, so its nodes are replaced by the call."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    arguments = dict(zip(names[1:] if is_method else names, given, strict=False)) | named
    return _translated(held, arguments, call, foreign)


def _translated(held: Held, arguments: dict[str, Held], call: ast.Call, foreign: bool) -> Held:
    if held.what in (What.NUMBER, What.NONE, What.SELF):
        return held
    places: set[Place] = set()
    for place in held.places:
        found = set(_translate(place, arguments, call, foreign))
        if not found:
            places = set()
            break
        places |= found
    parts = held.parts and tuple(_translated(x, arguments, call, foreign) for x in held.parts)
    each = held.each and _translated(held.each, arguments, call, foreign)
    what: What = held.what
    rank = held.rank
    own = arguments.get(held.path) if held.path else None
    if own is not None:  # the argument comes back, perhaps from another place
        what, rank = own.what if what is What.UNKNOWN else what, own.rank
    return replace(
        held, what=what, places=frozenset(places), rank=rank, path="", parts=parts, each=each,
        moved=None, was=frozenset(),
    )  # fmt: skip


def _translate(
    place: Place, arguments: dict[str, Held], call: ast.Call, foreign: bool
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
            elif place.where is Where.OF and argument.path:
                path = argument.path + place.subject[len(root) :]
                yield Place(Where.OF, path, given=given)
        elif place.where is Where.DEVICE and root == "self":
            yield Place(Where.DEVICE, place.subject, call, given)
        return
    yield replace(place, by=call if foreign and place.by is not None else place.by, given=given)


def _given(condition: str, arguments: dict[str, Held]) -> str | None:
    """The condition where the call stands; None where it is not known."""
    name, _, rest = condition.removeprefix("not ").partition(" ")
    if rest == "is None" and name not in arguments:
        return "" if not condition.startswith("not ") else "an argument is not passed"
    return f"{condition} in the function called"
