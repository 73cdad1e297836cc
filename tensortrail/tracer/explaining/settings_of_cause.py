"""The settings that a known cause or a lack of memory asks for, where no finding does."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tensortrail.findings import Setting
from tensortrail.rules.offload.out_of_memory import room
from tensortrail.rules.shared.refused_memory import Shortage
from tensortrail.rules.timeline import Timeline
from tensortrail.tracer.explaining.causes import Match
from tensortrail.tracer.explaining.operand import taken_by
from tensortrail.tracer.noticing.failed_operands import Failure
from tensortrail.tracer.reading.timeline import RunTimeline

_SAID = re.compile(r"\{(\w+)\}")


def settings_of(
    cause: Match | None,
    timeline: RunTimeline | None,
    failure: Failure | None,
    lack: Shortage | None,
) -> Iterator[Setting]:
    if cause is not None:
        yield from _of_cause(cause, timeline, failure)
    if lack is not None:
        yield from room(timeline, lack)


def _of_cause(
    known: Match, timeline: Timeline | None, failure: Failure | None
) -> Iterator[Setting]:
    """Settings of libraries that this program uses, but none that the run had set so already."""
    operands = failure.operands if failure and timeline else ()
    calls = [taken_by(timeline, each["storage"]) for each in operands if timeline]
    used = {facts.get("setting") for facts in calls if facts.get("value") is False}
    for setting in known.cause.settings:
        names = setting.library.replace("-", "_").split(", ")
        if setting.name not in used and any(name in sys.modules for name in names):
            yield from filled(setting, known.found)


def filled(setting: Setting, found: Mapping[str, str]) -> Iterator[Setting]:
    """The setting with what the message says for `{device}` and the like; nothing without it."""
    wanted = _SAID.findall(setting.value)
    if all(name in found for name in wanted):
        value = _SAID.sub(lambda match: found[match[1]], setting.value)
        yield replace(setting, value=value)
