"""Why it failed: the operands behind an exception, who put them there, what mends it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tensortrail.findings import Finding, Setting, Site
from tensortrail.rules.shared.history import placing
from tensortrail.rules.shared.operands import not_brought
from tensortrail.rules.timeline import Did, Event, Storage, Timeline
from tensortrail.tracer.explaining.causes import Cause, Match, match_chain, type_name_of
from tensortrail.tracer.explaining.failed_save import finding_of_save
from tensortrail.tracer.explaining.names_in_traceback import Scene
from tensortrail.tracer.explaining.out_of_memory import held_by, needed, room, shortage
from tensortrail.tracer.noticing.failed_operands import Failure, Failures
from tensortrail.tracer.reading.timeline import RunTimeline


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


@dataclass(frozen=True)
class Explanation:
    error: str
    hidden: tuple[str, ...] = ()
    """The errors behind a message that stands before any of them."""
    op: str = ""
    at: Site | None = None
    operands: tuple[Operand, ...] = ()
    first: Operand | None = None
    """The operand that brought the trouble in, at an earlier operation."""
    met: Event | None = None
    """That operation."""
    cause: Cause | None = None
    finding: Finding | None = None
    """What the rules say of the call that failed: more than a known cause of its message."""
    settings: tuple[Setting, ...] = ()
    needed: str = ""
    """The bytes that were missing, where memory was."""
    holders: tuple[str, ...] = ()
    """What lies there."""


def explain(
    error: BaseException, failures: Failures | None, opened: Callable[[], RunTimeline] | None
) -> Explanation | None:
    """None when the error has nothing to do with where tensors are."""
    chain = match_chain(error)
    told = [(link, found) for link, found in chain if found is not None]
    failed = next(
        (
            (link, failure)
            for link, _ in reversed(chain)
            if failures is not None and (failure := failures.of(link)) is not None
        ),
        None,
    )
    finding = finding_of_save(error, opened) if opened else None
    if not told and not finding and not (failed and _mixed(failed[1])):
        return None
    best = _telling(told)
    link = failed[0] if failed else (best[0] if best else error)
    operands: tuple[Operand, ...] = ()
    op, at, met, first, timeline = "", None, None, None, None
    scene = Scene(failures.storages if failures else None, link, error)
    lack = shortage(str(best[0])) if best and best[1].cause.family == "memory" else None
    if opened and (lack or (failed and failed[1].operands)):
        timeline = opened()
    if failed is not None:
        operands = tuple(_operands(failed[1], scene, timeline))
        op = failed[1].op
        met = _first_meeting(failed[1], timeline) if timeline else None
        if met is not None and met.storage is not None and timeline is not None:
            first = _met_operand(met, met.storage, timeline, scene)
    at = scene.user_site()
    cause = best[1].cause if best else None
    hides = cause is not None and any(found.cause.catch_all for _, found in told)
    behind = [each for each, _ in chain[1:]] if hides or len(chain) > 1 else []
    return Explanation(
        error=_line(error),
        hidden=tuple(_line(each) for each in behind),
        op=op,
        at=at,
        operands=operands,
        first=first,
        met=met,
        cause=cause,
        finding=finding,
        settings=finding.settings
        if finding
        else (
            *_settings(
                cause, best[1].found if best else {}, timeline, failed[1] if failed else None
            ),
            *(room(timeline, lack) if lack else ()),
        ),
        needed=needed(lack) if lack else "",
        holders=tuple(held_by(timeline, lack.device)) if lack and timeline else (),
    )


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
        name = scene.name(identity)
        if not name and timeline and storage and timeline.is_named(storage):
            name = timeline.name(storage)
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
        )


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


def _first_meeting(failure: Failure, timeline: Timeline) -> Event | None:
    """Where these devices met for the first time, if the failed operation was not the first."""
    devices = {str(each["device"]) for each in failure.operands if each["shape"]}
    numbers = {each["storage"] for each in failure.operands}
    for event in timeline.events(Did.MEET):
        if event.storage is not None and event.storage.number in numbers:
            return None  # the operand at hand is to blame itself
        if devices & set(event.facts.get("devices", ())) - {"cpu"}:
            return event
    return None


def _met_operand(met: Event, storage: Storage, timeline: Timeline, scene: Scene) -> Operand:
    puts = placing(timeline.history(storage, met))
    return Operand(
        argument="",
        name=scene.name_of_storage(storage.number) or timeline.name(storage),
        device=storage.device,
        dtype=storage.dtype,
        shape=storage.shape,
        placed=puts[-1] if puts else None,
        made=puts[0] if len(puts) > 1 else None,
        odd=True,
    )


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
    """Of libraries that this program uses, and without what the run had set so already."""
    operands = failure.operands if failure and timeline else ()
    calls = [_taken_by(timeline, each["storage"]) for each in operands if timeline]
    used = {facts.get("setting") for facts in calls if facts.get("value") is False}
    for setting in cause.settings if cause else ():
        names = setting.library.replace("-", "_").split(", ")
        if setting.name not in used and any(name in sys.modules for name in names):
            yield from filled(setting, found)


def filled(setting: Setting, found: Mapping[str, str]) -> Iterator[Setting]:
    """With what the message says in the places of `{device}` and the like; not without it."""
    wanted = _SAID.findall(setting.value)
    if all(name in found for name in wanted):
        value = _SAID.sub(lambda match: found[match[1]], setting.value)
        yield replace(setting, value=value)
