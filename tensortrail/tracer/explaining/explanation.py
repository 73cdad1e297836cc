"""An explanation tells why a program failed: the operands, who put them there, what mends it."""

from __future__ import annotations

import pickle
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from traceback import walk_tb
from typing import Any

from tensortrail.findings import Finding, Setting, Site
from tensortrail.rules.offload.out_of_memory import OutOfMemory, room
from tensortrail.rules.shared.history import placing
from tensortrail.rules.shared.operands import not_brought, part_of_weight
from tensortrail.rules.shared.refused_memory import Shortage, shortage
from tensortrail.rules.timeline import Did, Event, Storage, Timeline
from tensortrail.tracer.explaining.bytes_by_model import bytes_by_model
from tensortrail.tracer.explaining.causes import Cause, Match, match_chain, type_name_of
from tensortrail.tracer.explaining.compared_devices import compared
from tensortrail.tracer.explaining.failed_save import finding_of_save, saves
from tensortrail.tracer.explaining.fitting import fitting
from tensortrail.tracer.explaining.names_in_traceback import Scene
from tensortrail.tracer.explaining.phase_traces import beginning
from tensortrail.tracer.explaining.standing_findings import standing_findings
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.storages import device_of
from tensortrail.tracer.noticing.failed_operands import Failure, Failures
from tensortrail.tracer.reading.timeline import RunTimeline

MAY_BE_FOUND = (
    KeyError, RuntimeError, ValueError, TypeError, AttributeError, pickle.PickleError,
)  # fmt: skip
"""Exceptions that a finding of the run may explain, whatever their message."""


@dataclass(frozen=True)
class Operand:
    """One tensor the failed operation was given."""

    argument: str
    name: str
    device: str
    dtype: str
    shape: tuple[int, ...]
    placed: Event | None = None
    """The event that put it where it is."""
    made: Event | None = None
    """Where its values came from, when that is another event."""
    hook: str = ""
    """The hook that should have moved it, and why it did not."""
    odd: bool = False
    """It lies where the others do not."""
    behind: tuple[Site, ...] = ()
    """The lines that it came through, where no event tells who put it there."""


@dataclass(frozen=True)
class Explanation:
    error: str
    hidden: tuple[str, ...] = ()
    """The errors behind a message that stands before any of them."""
    op: str = ""
    at: Site | None = None
    raised: Event | None = None
    """The exception as it was recorded, with its thread."""
    operands: tuple[Operand, ...] = ()
    first: Operand | None = None
    """The operand that brought the trouble in, at an earlier operation."""
    met: Event | None = None
    """That operation."""
    cause: Cause | None = None
    findings: tuple[Finding, ...] = ()
    """What the rules find in this run about what failed: more than a known cause of a message."""
    settings: tuple[Setting, ...] = ()
    """Those that a known cause or a lack of memory asks for, where there is no finding."""
    needed: str = ""
    """The bytes that were missing, where memory was."""
    holders: tuple[str, ...] = ()
    """What lies there, by model."""
    filled: tuple[Mapping[str, Any], ...] = ()
    """What lies there, by kind and line, where every byte is known."""


def explain(
    error: BaseException,
    failures: Failures | None,
    opened: Callable[[], RunTimeline] | None,
    phase: str = "",
) -> Explanation | None:
    """None when the error has nothing to do with where tensors are. What happened before the phase
    began, another test for example, is not taken for its beginning."""
    chain = match_chain(error)
    told = [(link, found) for link, found in chain if found is not None]
    failed = _failed(chain, failures)
    failure = failed[1] if failed else None
    known = told or failed or saves(error) or _may_be_found(error)
    timeline = opened() if opened and known else None
    best = _telling(told)
    family = best[1].cause.family if best else ""
    lack = shortage(str(best[0])) if best and family == "memory" else None
    standing = _standing(error, failure, timeline, phase, family) if timeline else ()
    if lack is not None:
        standing = tuple(each for each in standing if each.code == OutOfMemory.code)
    if not told and not standing and not (failure and _mixed(failure)):
        return None if failed else _of_assert(error, failures, opened)
    link = failed[0] if failed else (best[0] if best else error)
    scene = Scene(link, error)
    since = beginning(phase, timeline) if phase and timeline else 0.0
    met = _first_meeting(failure, timeline, since) if failure and timeline else None
    cause = best[1] if best else None
    filled = tuple(vars(best[0]).get("filled", ())) if best and lack else ()
    hides = any(found.cause.catch_all for _, found in told)
    told_all = Explanation(
        error=_line(error),
        hidden=tuple(_line(each) for each, _ in chain[1:]) if hides or len(chain) > 1 else (),
        op=failure.op if failure else "",
        at=scene.user_site(),
        raised=_raised(failure, timeline) if failure and timeline else None,
        operands=tuple(_operands(failure, scene, timeline)) if failure else (),
        first=_first_operand(met, timeline),
        met=met,
        cause=fitting(cause.cause) if cause else None,
        findings=standing,
        settings=() if standing else tuple(_other_settings(cause, timeline, failure, lack)),
        needed=str(lack) if lack and not standing else "",
        holders=bytes_by_model(timeline, lack.device) if timeline and lack and not filled else (),
        filled=filled,
    )
    return told_all if _says_anything(told_all) else None


def _may_be_found(error: BaseException) -> bool:
    """An assert of the program's own says what it means; a library's may be about its tensors."""
    if isinstance(error, AssertionError):
        files = [frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)]
        return bool(files) and OWNERS[files[-1]] != USER
    return isinstance(error, MAY_BE_FOUND)


def _says_anything(told: Explanation) -> bool:
    """A known cause may have nothing that fits this program."""
    parts = (told.hidden, told.op, told.operands, told.cause, told.findings, told.settings)
    return any(parts) or bool(told.needed or told.holders or told.filled)


def _of_assert(
    error: BaseException, failures: Failures | None, opened: Callable[[], RunTimeline] | None
) -> Explanation | None:
    """Of an assert that compares devices: where the tensors lie that it asked."""
    if failures is None or opened is None or not isinstance(error, AssertionError):
        return None
    scene = Scene(error)
    entries = [
        (name, tensor, failures.storages.entry(tensor))
        for name, tensor in compared(error, scene.user_frame())
    ]
    if not entries:
        return None
    timeline = opened()
    return Explanation(
        error=_line(error),
        op="the comparison",
        at=scene.user_site(),
        operands=tuple(
            _compared(name, tensor, timeline.here(entry.number), timeline, scene)
            for name, tensor, entry in entries
            if entry is not None
        ),
    )


def _compared(
    name: str, tensor: Any, storage: Storage | None, timeline: Timeline, scene: Scene
) -> Operand:
    device = str(device_of(tensor))
    puts = placing(timeline.history(storage)) if storage else []
    return Operand(
        argument=name,
        name=_name(timeline, storage),
        device=device,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(tensor.shape),
        placed=puts[-1] if puts else None,
        behind=() if puts else scene.lines_behind(id(tensor), device),
    )


def _failed(
    chain: Sequence[tuple[BaseException, Match | None]], failures: Failures | None
) -> tuple[BaseException, Failure] | None:
    """The operation that raised, the innermost one if there are several."""
    for link, _ in reversed(chain):
        if failures is not None and (failure := failures.of(link)) is not None:
            return link, failure
    return None


def _standing(
    error: BaseException, failure: Failure | None, timeline: RunTimeline, phase: str, family: str
) -> tuple[Finding, ...]:
    saved = finding_of_save(error, timeline)
    return (saved,) if saved else standing_findings(error, failure, timeline, phase, family)


def _other_settings(
    cause: Match | None,
    timeline: RunTimeline | None,
    failure: Failure | None,
    lack: Shortage | None,
) -> Iterator[Setting]:
    if cause is not None:
        yield from _settings(cause.cause, cause.found, timeline, failure)
    if lack is not None:
        yield from room(timeline, lack)


def _telling(told: Sequence[tuple[BaseException, Match]]) -> tuple[BaseException, Match] | None:
    """What lies behind a message that hides others says more than that message."""
    for link, found in told:
        if not found.cause.catch_all:
            return link, found
    return told[-1] if told else None


def _mixed(failure: Failure) -> bool:
    devices = {each["device"] for each in failure.operands if each["shape"]}
    return len(devices) > 1 or "meta" in devices


def _line(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type_name_of(error)}: {first}" if first else type_name_of(error)


def _operands(failure: Failure, scene: Scene, timeline: Timeline | None) -> Iterable[Operand]:
    names = scene.parameters(failure.op)
    odd = _odd_device(failure.operands)
    identities = failure.identities or (0,) * len(failure.operands)
    for told, identity in zip(failure.operands, identities, strict=True):
        storage = _storage(timeline, told)
        events = timeline.history(storage) if timeline and storage else ()
        puts = placing(events)
        placed = puts[-1] if puts else None
        made = puts[0] if len(puts) > 1 else None
        name = (
            _part(timeline, told)
            or _name(timeline, storage)
            or _variables(told, scene.name(identity))
        )
        yield Operand(
            argument=_argument(str(told["arg"]), names),
            name=name,
            device=str(told["device"]),
            dtype=str(told["type"] or told["dtype"]),
            shape=tuple(told["shape"]),
            placed=placed,
            made=made if told["device"] == odd else None,
            hook=_hook(told) or scene.hook(identity) or _left_there(timeline, storage),
            odd=told["device"] == odd,
            behind=scene.lines_behind(identity, odd)
            if told["device"] == odd and not placed
            else (),
        )


def _name(timeline: Timeline | None, storage: Storage | None) -> str:
    """As the findings of the run call it; empty if it has no name there."""
    named = timeline is not None and storage is not None and timeline.is_named(storage)
    return timeline.name(storage) if timeline and storage and named else ""


def _part(timeline: Timeline | None, told: dict[str, Any]) -> str:
    """Of an optimizer's step: the state or gradient of a weight."""
    optimizer = told.get("optimizer")
    if timeline is None or optimizer is None:
        return ""
    return part_of_weight(timeline, optimizer, timeline.here(optimizer["weight"]))


def _variables(told: dict[str, Any], outside: str) -> str:
    """The variable at the failing line, as findings call it, and the caller's for the same."""
    inside = str(told.get("name", ""))
    if inside and outside and inside != outside:
        return f"{inside} ({outside} in the caller)"
    return inside or outside


def _hook(told: dict[str, Any]) -> str:
    return not_brought(told["hook"]) if "hook" in told else ""


def _left_there(timeline: Timeline | None, storage: Storage | None) -> str:
    """The library's call that took it away, and what its setting had said."""
    facts = _taken_by(timeline, storage.number) if timeline and storage else {}
    if not facts:
        return ""
    off = facts.get("value") is False
    although = f", although `{facts.get('setting')}` is False" if off else ""
    return f"left there by `{facts['call']}()`{although}"


def _taken_by(timeline: Timeline, storage: int) -> Mapping[str, Any]:
    """What is known of the library's call that moved it last."""
    for event in reversed(timeline.events(Did.HOOK)):
        if "call" in event.facts and storage in event.facts.get("storages", ()):
            return event.facts
    return {}


def _first_meeting(failure: Failure, timeline: Timeline, since: float) -> Event | None:
    """Where these devices met for the first time, if the failed operation was not the first."""
    devices = {str(each["device"]) for each in failure.operands if each["shape"]}
    numbers = {each["storage"] for each in failure.operands}
    for event in timeline.events(Did.MEET):
        if event.time < since:
            continue
        if event.storage is not None and event.storage.number in numbers:
            return None  # the operand at hand is to blame itself
        if devices & set(event.facts.get("devices", ())) - {"cpu"}:
            return event
    return None


def _first_operand(met: Event | None, timeline: Timeline | None) -> Operand | None:
    """The operand that was in the wrong place when devices met for the first time."""
    storage = met.storage if met else None
    if storage is None or timeline is None:
        return None
    puts = placing(timeline.history(storage, met))
    return Operand(
        argument="",
        name=timeline.name(storage),
        device=storage.device,
        dtype=storage.dtype,
        shape=storage.shape,
        placed=puts[-1] if puts else None,
        made=puts[0] if len(puts) > 1 else None,
        odd=True,
    )


def _raised(failure: Failure, timeline: Timeline) -> Event | None:
    for event in reversed(timeline.events(Did.ERROR)):
        said = failure.message.startswith(str(event.facts.get("message")))
        if said and event.facts.get("number") == failure.number:
            return event
    return None


def _odd_device(operands: Sequence[dict[str, Any]]) -> str:
    """The device that is to blame: meta before cpu before the rarest other."""
    devices = [str(each["device"]) for each in operands if each["shape"]]
    if len(set(devices)) < 2:
        return "meta" if "meta" in devices else ""
    order = {"meta": 0, "cpu": 1}
    return min(set(devices), key=lambda each: (order.get(each, 2), devices.count(each)))


def _storage(timeline: Timeline | None, told: dict[str, Any]) -> Storage | None:
    return timeline.here(told["storage"]) if timeline and told["storage"] else None


def _argument(place: str, names: Sequence[str]) -> str:
    head, bracket, rest = place.partition("[")
    if head.isdigit():
        number = int(head)
        head = names[number] if number < len(names) else f"argument {number + 1}"
    return head + bracket + rest


_SAID = re.compile(r"\{(\w+)\}")


def _settings(
    cause: Cause | None,
    found: Mapping[str, str],
    timeline: Timeline | None,
    failure: Failure | None,
) -> Iterator[Setting]:
    """Settings of libraries that this program uses, but none that the run had set so already."""
    operands = failure.operands if failure and timeline else ()
    calls = [_taken_by(timeline, each["storage"]) for each in operands if timeline]
    used = {facts.get("setting") for facts in calls if facts.get("value") is False}
    for setting in cause.settings if cause else ():
        names = setting.library.replace("-", "_").split(", ")
        if setting.name not in used and any(name in sys.modules for name in names):
            yield from filled(setting, found)


def filled(setting: Setting, found: Mapping[str, str]) -> Iterator[Setting]:
    """The setting with what the message says for `{device}` and the like; nothing without it."""
    wanted = _SAID.findall(setting.value)
    if all(name in found for name in wanted):
        value = _SAID.sub(lambda match: found[match[1]], setting.value)
        yield replace(setting, value=value)
