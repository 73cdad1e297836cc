"""A collective of a run that failed, and what another rank did in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tensortrail.plurals import ordinal
from tensortrail.rules.shards._left_ranks import rank_of
from tensortrail.rules.shared.lines import line_of, place
from tensortrail.rules.timeline import Did, Event, Timeline

SAME_CALLS = "let every rank make the same collectives in the same order"
SAME_SIZES = (
    "bring it to one size on all ranks, by padding to the longest, or exchange the sizes first and "
    "give each rank's part a tensor of its own"
)


class Parted(NamedTuple):
    failed: Event
    other: Event
    """The collective of another rank with the same number."""
    sizes: tuple[str, str] | None
    """Of what they gave and took, if all else is the same."""

    @property
    def change(self) -> str:
        return SAME_SIZES if self.sizes else SAME_CALLS

    def __str__(self) -> str:
        own, their = rank_of(self.failed), rank_of(self.other)
        number = ordinal(int(self.failed.facts["number"]))
        if self.sizes:
            here, there = self.sizes
            return f"`{self.failed.op}` is given {here} in {own} and {there} in {their}"
        ended = "ended" if self.failed.facts.get("inside") else "failed"
        return (
            f"`{self.failed.op}`, the {number} collective of {own}, {ended}: the {number} of "
            f"{their} was `{self.other.op}`{place(line_of(self.other))}"
        )


def parted(timeline: Timeline) -> Iterator[Parted]:
    """The first of each run: what follows comes of it. A rank that ended inside of one, as gloo
    lets it, has failed in it."""
    events = [each for each in timeline.events(Did.COLLECTIVE) if "number" in each.facts]
    events += timeline.cut_short()
    for failed in events:
        if failed.facts.get("failed") or failed.facts.get("inside"):
            found = _other(failed, events)
            if found is not None:
                yield found
                return


def _other(failed: Event, events: Sequence[Event]) -> Parted | None:
    number = failed.facts["number"]
    for each in events:
        if each.process != failed.process and each.facts["number"] == number:
            if each.op != failed.op or not _at_one_line(each, failed):
                return Parted(failed, each, None)
            if sizes := _unequal(failed.facts.get("sizes"), each.facts.get("sizes")):
                return Parted(failed, each, sizes)
    return None


def _at_one_line(one: Event, other: Event) -> bool:
    here, there = line_of(one), line_of(other)
    if here is None or there is None:
        return here is there
    return (here.file, here.line) == (there.file, there.line)


def _unequal(here: Any, there: Any) -> tuple[str, str] | None:
    if not isinstance(here, (list, tuple)) or not isinstance(there, (list, tuple)):
        return None
    pairs = zip(map(str, here), map(str, there), strict=False)
    return next((pair for pair in pairs if pair[0] != pair[1]), None)
