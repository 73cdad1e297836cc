"""What a function gives back, said in the terms of the one who calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import suppress

from tensortrail.analyzer.places.functions.callee import Callee
from tensortrail.analyzer.places.functions.translated import translated
from tensortrail.analyzer.places.held.operations import as_operand
from tensortrail.patterns import pattern
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.places import INDEX, ON_CPU_UNLESS_ASKED, Held, Meeting, Place, What, Where
from tensortrail.rules.text_of import text_of

_NOWHERE_ELSE = frozenset({"None", "'cpu'", "torch.device('cpu')"})
"""Defaults of a device argument that put a tensor on the CPU, or leave it there."""
_CURRENT_GPU = frozenset({"'cuda'", "torch.device('cuda')"})
_WORD = pattern(r"\w+")


def result_of(
    callee: Callee, call: ast.Call, given: Sequence[Held], named: dict[str, Held]
) -> Held | None:
    """What the call gives back; None if that is not known."""
    returns = callee.inferred().returns if callee.how.gives_back else None
    if returns is None:
        return None
    arguments = _arguments(callee, given, named)
    return translated(returns, _left_out(callee, arguments, call) | arguments, call, callee)


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
            left, right = (translated(each, taken, call, callee) for each in sides)
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
