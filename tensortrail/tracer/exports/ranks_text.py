"""The text report of a run of many ranks: what they share is one line, then who differs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from tensortrail.inert import inert
from tensortrail.plurals import counted
from tensortrail.tracer.reading.ranks.deeds import Difference
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.ranks.run_of_ranks import RunOfRanks
from tensortrail.tracer.reading.ranks.statements import (
    DEVICES,
    ERRORS,
    MEETINGS,
    MOVES,
    PHASES,
)
from tensortrail.tracer.reading.sentences import place

ROWS = 12
TITLES = {
    MOVES: "Who moved what",
    DEVICES: "Bytes by device at the end",
    PHASES: "Phases",
    MEETINGS: "Operations on mixed devices",
    ERRORS: "Exceptions seen",
}


def render(run: RunOfRanks, *, color: bool = False, width: int = 100) -> str:
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, highlight=False
    )
    console.print(_head(run))
    for title, lines in sections(run):
        console.print(Text(f"\n{title}", "bold"))
        for line in lines[:ROWS]:
            console.print(Text(f"  {inert(line)}"), soft_wrap=True)
        if rest := lines[ROWS:]:
            console.print(f"  and {len(rest):,} more")
    return out.getvalue()


def sections(run: RunOfRanks) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines, for the text and the page alike; what is empty is left out."""
    differing = [*map(difference, run.differences()), *run.shared_devices()]
    told = [("Where ranks differ", differing)]
    told += [
        (title, [each.sentence for each in run.folding.folded(section)])
        for section, title in TITLES.items()
    ]
    return (each for each in told if each[1])


def difference(each: Difference) -> str:
    times = f" and {each.count - 1} more" if each.count > 1 else ""
    if len(each.others) < len(each.ranks):
        return f"all but {named(each.others)}: {each.what}{times} at {place(each.site)}"
    return f"{named(each.ranks)} only: {each.what}{times} at {place(each.site)}"


def _head(run: RunOfRanks) -> Any:
    from rich.text import Text

    facts = [
        counted(run.events, "event"),
        counted(len(run.ranks), "rank"),
        f"{run.seconds:.1f} s" if run.seconds >= 1 else f"{run.seconds * 1e3:.0f} ms",
        f"torch {run.header.get('torch', '?')}",
    ]
    if run.processes > len(run.ranks):
        facts.insert(2, counted(run.processes, "process"))
    if run.dropped:
        facts.append(f"{counted(run.dropped, 'event')} dropped at the size limit")
    if run.open_ended:
        facts.append(f"{counted(run.open_ended, 'process')} without a recorded end")
    return Text.assemble((inert(run.program), "bold"), "\n", (" · ".join(facts), "dim"))
