"""What a function gives back, said in the terms of the one who calls it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from tensortrail.analyzer.places.held.operations import as_operand
from tensortrail.patterns import pattern
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.places import (
    INDEX,
    ON_CPU_UNLESS_ASKED,
    FunctionPlaces,
    Held,
    Meeting,
    Place,
    What,
    Where,
)
from tensortrail.rules.text_of import text_of
from tensortrail.rules.unchanging import unchanging

_ELSEWHERE = "a condition in the function called holds"
_NOWHERE_ELSE = frozenset({"None", "'cpu'", "torch.device('cpu')"})
"""Defaults of a device argument that put a tensor on the CPU, or leave it there."""
_CURRENT_GPU = frozenset({"'cuda'", "torch.device('cuda')"})
_WORD = pattern(r"\w+")


@unchanging(frozen=True, slots=True)
class CalledAs:
    """How a function is called, and whether it answers."""

    parameters: ast.arguments
    is_method: bool
    gives_back: bool
    """What it returns is what the caller gets: no generator, no unknown decorator, and some
    `return` has a value."""
    chooses_a_device: bool
    """`if device is None: device = ...`"""


@unchanging(frozen=True, slots=True)
class Callee:
    """A function of the project that a call runs."""

    how: CalledAs
    inferred: Callable[[], FunctionPlaces]
    """Asked only where it matters: the most work of all is running what is called."""
    foreign: bool
    """It stands in another file: its nodes are replaced by the call."""


def result_of(
    callee: Callee, call: ast.Call, given: Sequence[Held], named: dict[str, Held]
) -> Held | None:
    """What the call gives back; None if that is not known."""
    returns = callee.inferred().returns if callee.how.gives_back else None
    if returns is None:
        return None
    arguments = _arguments(callee, given, named)
    return _translated(returns, _left_out(callee, arguments, call) | arguments, call, callee)


def demands_of(
    callee: Callee, call: ast.Call, given: Sequence[Held], named: dict[str, Held]
) -> Iterator[Meeting]:
    """What meets inside of the function because of what is passed to it."""
    arguments = _arguments(callee, given, named)
    doubtful = {name for name, held in arguments.items() if _stays_behind(held)}
    operands = {name: as_operand(held) for name, held in arguments.items()}
    of_object = _is_known_object(arguments.get("self"))
    if not doubtful and not of_object:
        return
    for meeting in callee.inferred().meetings:
        sides = [meeting.left, meeting.right]
        roots = _roots(sides[0]) | _roots(sides[1])
        passed = bool(doubtful & roots) and not _depends(meeting, doubtful)
        passed = passed and not _is_never(meeting.conditions, callee, call)
        kept = of_object and not meeting.conditions and any(map(_is_kept, sides))
        if (passed or (kept and roots)) and all(_is_plain(each) for each in sides):
            taken = operands if kept else arguments
            left, right = (_translated(each, taken, call, callee) for each in sides)
            if meeting.operation == INDEX and right.may_be_scalar:
                continue  # a number
            yield Meeting(call, meeting.operation, left, right, meeting.by_element)


def _arguments(callee: Callee, given: Sequence[Held], named: dict[str, Held]) -> dict[str, Held]:
    parameters = callee.how.parameters
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    return dict(zip(names[1:] if callee.how.is_method else names, given, strict=False)) | named


def _left_out(callee: Callee, arguments: dict[str, Held], call: ast.Call) -> dict[str, Held]:
    """Devices that are not passed and are the CPU, none or a GPU that is written there, unless
    they may be passed or the function then chooses one."""
    if any(each.arg is None for each in call.keywords) or "device" in arguments:
        return {}
    if callee.how.chooses_a_device:
        return {}
    defaults = {each.arg: default for each, default in with_defaults(callee.how.parameters)}
    default = text_of(defaults["device"]) if "device" in defaults else ""
    if default in _NOWHERE_ELSE:
        place = Place(Where.DEFAULT, by=call)
    elif default in _CURRENT_GPU:
        place = Place(Where.LITERAL, "cuda", by=call)
    else:
        return {}
    return {"device": Held(What.DEVICE, frozenset({place}))}


def _stays_behind(held: Held) -> bool:
    return any(each.where in ON_CPU_UNLESS_ASKED for each in held.places)


def _is_known_object(held: Held | None) -> bool:
    return held is not None and held.made is not None


def _is_kept(held: Held) -> bool:
    """A plain object keeps it where its class made it."""
    only = held.only
    return only is not None and only.where in (Where.DEFAULT, Where.HOST) and bool(only.subject)


def _roots(held: Held) -> set[str]:
    """The arguments that it lies with."""
    own = {"self" for each in held.places if each.where is Where.SELF}
    return own | {each.subject for each in held.places if each.where is Where.OF}


def _depends(meeting: Meeting, names: set[str]) -> bool:
    """Whether they meet depends on what is asked of these arguments themselves."""
    words = {word for each in meeting.conditions for word in _WORD.findall(each)}
    nones = {f"not {name} is None" for name in names}
    return bool(names & words) and not nones.issuperset(
        each for each in meeting.conditions if names & set(_WORD.findall(each))
    )


_COMPARES = pattern(r"(not )?(\w+) (==|in|is) (.+)")


def _is_never(conditions: Sequence[str], callee: Callee, call: ast.Call) -> bool:
    """One of them compares an argument with a constant, and the call gives another constant."""
    said = _constants(callee, call)
    for condition in conditions:
        compared = _COMPARES.fullmatch(condition)
        if compared is None or compared[2] not in said:
            continue
        with suppress(ValueError, SyntaxError, TypeError):
            meant, given = ast.literal_eval(compared[4]), said[compared[2]]
            if (given in meant if compared[3] == "in" else given == meant) is bool(compared[1]):
                return True
    return False


def _constants(callee: Callee, call: ast.Call) -> dict[str, object]:
    """The constants that the call gives, by parameter."""
    parameters = callee.how.parameters
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    given = dict(zip(names[1:] if callee.how.is_method else names, call.args, strict=False))
    given |= {each.arg: each.value for each in call.keywords if each.arg}
    return {name: each.value for name, each in given.items() if isinstance(each, ast.Constant)}


def _is_plain(held: Held) -> bool:
    """It lies on one place on every path, and not only where a variable does."""
    return held.only is not None and not held.only.given and held.only.where is not Where.LOCAL


def _translated(held: Held, arguments: dict[str, Held], call: ast.Call, callee: Callee) -> Held:
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
    parts = held.parts and tuple(_translated(x, arguments, call, callee) for x in held.parts)
    each = held.each and _translated(held.each, arguments, call, callee)
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
