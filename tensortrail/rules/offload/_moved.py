"""Modules that a library call left on another device, in a recorded run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

from tensortrail.findings import Setting, Site, Step
from tensortrail.rules.shared.calls import carrier, quoted
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import place, where
from tensortrail.rules.shared.operands import Operand, called, named, operands
from tensortrail.rules.shared.sizes import size
from tensortrail.rules.timeline import Did, Event, Storage, Timeline
from tensortrail.rules.unchanging import unchanging

HOST = ("cpu", "meta")
MOVES_ONLY = "deallocate_module"
_TORCH = f"{os.sep}torch{os.sep}"


def gone(timeline: Timeline) -> Iterator[Event]:
    """Calls after which parameters of the caller's are no longer on an accelerator."""
    for event in timeline.events(Did.HOOK):
        facts = event.facts
        if (
            "call" in facts
            and facts.get("storages")
            and facts.get("to") in HOST
            and facts.get("from") not in HOST
        ):
            yield event


def storages(timeline: Timeline, event: Event) -> list[Storage]:
    numbers = event.facts.get("storages")
    found = (timeline.storage(event.process, each) for each in numbers or ())
    return [each for each in found if each is not None]


def sentence(timeline: Timeline, event: Event) -> str:
    """`model.embed.weight` and 13 more (2.1 GB) went cuda:0 -> cpu inside `refit_gm()`"""
    facts, moved = event.facts, storages(timeline, event)
    what = f"{named(timeline, moved, most=1)} ({size(facts['bytes'])})"
    return f"{what} went {facts['from']} -> {facts['to']} inside `{facts['call']}()`"


def against_setting(timeline: Timeline) -> Iterator[Event]:
    for event in gone(timeline):
        if event.facts.get("value") is False and event.op != MOVES_ONLY:
            yield event


def against(timeline: Timeline, event: Event) -> str:
    told = f"{sentence(timeline, event)} although `{event.facts['setting']}` is False"
    use = next((each for each in uses(timeline) if each.mover == event), None)
    if use is None:
        return told
    return f"{told}; it then met {use.others(timeline)}{where(use.event)}"


def in_library(timeline: Timeline, event: Event) -> Iterator[Step]:
    """The line of the library on which the module was moved."""
    first = event.facts["storages"][:1]
    text = f"`{event.facts['call']}` calls `{MOVES_ONLY}` here and does not ask the setting"
    for each in gone(timeline):
        if each.op == MOVES_ONLY and each.facts["storages"][:1] == first and each.by is not None:
            (step,) = timeline.steps([replace(each, site=each.by)])
            yield replace(step, message=text)


def setting(timeline: Timeline, event: Event) -> list[Setting]:
    """What leaves the module where it was: the setting, if this call asks it, else its way back."""
    facts = event.facts
    if not facts.get("setting"):
        return []
    call, name, device = facts["call"], facts["setting"], facts["from"]
    if not facts.get("value"):
        given = given_at(timeline, event)
        since = f", which is False{place(given)}," if facts.get("value") is False else ""
        why = f"takes the module back: `{call}()` does not ask `{name}`{since} before it moves it"
        where_to = f"the module, after `{call}()`{where(event)}"
        return [Setting("torch", "device", quoted(device), why, where_to, call="to")]
    why = f"leaves the module on {device}; with True `{call}()` takes it to {facts['to']}"
    takes = str(facts.get("takes") or facts.get("method_of") or "")
    at = carrier(timeline, given_at(timeline, event), takes)
    return [Setting(str(facts["library"]), str(name), "False", why, takes, call=takes, at=at)]


def given_at(timeline: Timeline, event: Event) -> Site | None:
    """Where this call's settings were given: to itself, or to the object it is a method of."""
    maker, moved = event.facts.get("method_of"), storages(timeline, event)[:1]
    if maker is None:
        return event.site
    history = timeline.history(moved[0], event) if moved else ()
    known = {each.storage.number for each in history if each.storage}
    made = (
        each.site
        for each in reversed(timeline.events(Did.HOOK))
        if each.facts.get("made") == maker
        and each.process == event.process
        and each.time <= event.time
        and known & set(each.facts.get("storages", ()))
    )
    return next(made, None)


@unchanging(frozen=True, slots=False)
class Use:
    """An operation that met a storage after a call had taken it away."""

    event: Event
    operand: Operand
    mover: Event

    @property
    def call(self) -> str:
        return str(self.mover.facts.get("call") or _function(self.mover))

    def others(self, timeline: Timeline) -> str:
        there = (called(timeline, each) for each in self._there(timeline))
        return f"{' and '.join(there)} on {' and '.join(self.devices(timeline))}"

    def devices(self, timeline: Timeline) -> list[str]:
        """Those of the other operands."""
        return list(dict.fromkeys(each.device for each in self._there(timeline)))

    def _there(self, timeline: Timeline) -> list[Operand]:
        return [each for each in operands(timeline, self.event) if each.device not in HOST]


def uses(timeline: Timeline) -> Iterator[Use]:
    movers = {
        storage.key: event for event in gone(timeline) for storage in storages(timeline, event)
    }
    for event in timeline.events(Did.ERROR, Did.MEET):
        given = operands(timeline, event)
        if all(each.device in HOST for each in given):
            continue
        for each in given:
            if each.storage is None or each.device not in HOST:
                continue
            mover = movers.get(each.storage.key) or _library_move(timeline, each.storage, event)
            if mover is not None and mover.time <= event.time:
                yield Use(event, each, mover)
                break


def _library_move(timeline: Timeline, storage: Storage, until: Event) -> Event | None:
    """The last move, if a library asked for it and not the user."""
    last = put_there(timeline, storage, until)
    if last is None or last.other is None or last.other.device in HOST:
        return None
    asked_by = last.by
    return None if asked_by is None or _TORCH in asked_by.file else last


def _function(event: Event) -> str:
    return event.by.function.rpartition(".")[2] if event.by and event.by.function else event.op
