"""A rank that waited for another which had already left the group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.plurals import counted, ordinal
from tensortrail.rules.shared.lines import where
from tensortrail.rules.timeline import Did, Event, Timeline

LEFT_ALONE = "left alone"
LEAVES = "destroy_process_group"
AS_MANY = (
    "give every rank as many batches: a DistributedSampler fills up the last ones; or run the loop "
    "in `with ddp.join():`, which lets a rank be done before the others"
)
TOGETHER = "let every rank leave the group behind the last call that all of them make"


class Left(NamedTuple):
    failed: Event
    gone: Event

    @property
    def more(self) -> bool:
        """The rank that waits is in a step that the other has not made."""
        return steps_of(self.failed) >= steps_of(self.gone) > 0

    @property
    def change(self) -> str:
        return AS_MANY if self.more else TOGETHER

    def __str__(self) -> str:
        own, their = rank_of(self.failed), rank_of(self.gone)
        steps = steps_of(self.gone)
        after = f" after {counted(steps, 'step')}" if steps else ""
        turn = ordinal(steps_of(self.failed) + 1)
        more = f", and {own} is in its {turn}: it has more batches" if self.more else ""
        return f"{own} waits here for {their}, which left the group{where(self.gone)}{after}{more}"


def left(timeline: Timeline) -> Iterator[Left]:
    """The first of the run."""
    alone = [each for each in timeline.events(Did.HOOK) if LEFT_ALONE in each.facts]
    gone = [each for each in timeline.events(Did.COLLECTIVE) if each.op == LEAVES] if alone else []
    for waiting in alone:
        for each in gone:
            if each.process != waiting.process:
                yield Left(waiting, each)
                return


def steps_of(event: Event) -> int:
    """Of optimizers until then."""
    steps = event.facts.get("steps")
    return steps if isinstance(steps, int) else 0


def rank_of(event: Event) -> str:
    return event.process.partition(",")[0]
