"""The answers to questions across ranks, as sentences and as data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tensortrail.inert import inert
from tensortrail.tracer.fleet.questions import NONE, QUESTIONS
from tensortrail.tracer.fleet.tables import Tables
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.sentences import short, size

Rows = list[dict[str, Any]]
Answers = Mapping[str, Rows]
LINES = 12
TITLES = {
    "placement": "Placement", "moves": "Bytes", "findings": "Findings",
    "collectives": "Calls of collectives", "waits": "Time in collectives",
    "silent": "Ended early",
}  # fmt: skip
ALIKE = "all ranks alike"


def answers(tables: Tables) -> Answers:
    return {name: _rows(ask(tables)) for name, ask in QUESTIONS.items()}


def _rows(expression: Any) -> Rows:
    """Numbers as Python has them, whatever the engine calls them; what there is none of is None."""
    return [
        {key: _plain(value) for key, value in row.items()}
        for row in expression.to_pyarrow().to_pylist()
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 6)
    return value


def text(told: Answers, program: str) -> str:
    (counted,) = told["counted"]
    lines = [f"{program}: {counted['ranks']:,} ranks, {counted['events'] or 0:,} events"]
    for name, title in TITLES.items():
        found = list(_lines(name, told))
        lines += ["", title, *(f"  {each}" for each in found[:LINES] or [_nothing(name)])]
        if rest := found[LINES:]:
            lines.append(f"  and {len(rest):,} more")
    return "\n".join(map(inert, lines)) + "\n"


def _nothing(name: str) -> str:
    if name == "silent":
        return "none: every rank ended well"
    return "none was recorded" if name == "waits" else ALIKE


def _lines(name: str, told: Answers) -> Iterator[str]:
    rows = told[name]
    if name == "waits":
        yield from map(_waited, rows)
    elif name == "silent":
        yield from _silent(rows, float(told["counted"][0]["began"] or 0.0))
    else:
        yield from _apart(name, rows)


def _apart(name: str, rows: Rows) -> Iterator[str]:
    """Ranks that differ in the same way from the same others share a line."""
    say = _moved if name == "moves" else _placed if name == "placement" else _times
    ordered = sorted(rows, key=_way)
    groups = [(way, [row["rank"] for row in group]) for way, group in groupby(ordered, key=_way)]
    for (fewest, subject, value, usual), ranks in groups:
        others = f"{-fewest:,} other {'ranks' if -fewest > 1 else 'rank'}"
        yield f"{_named(ranks)}: {_short(subject)}: {say(value)}; {others}: {say(usual)}"


def _way(row: Mapping[str, Any]) -> tuple[int, str, str, str]:
    return -row["usual_ranks"], row["subject"], row["value"], row["usual"]


def _named(ranks: Sequence[int]) -> str:
    return named(f"rank {each}" for each in sorted(ranks))


def _moved(value: str) -> str:
    if value == NONE:
        return "nothing moved"
    nbytes, _, times = value.partition(" ")
    return f"{size(int(nbytes))} in {times} {'move' if times == '1' else 'moves'}"


def _placed(value: str) -> str:
    return "never" if value == NONE else "yes"


def _times(value: str) -> str:
    if value == NONE:
        return "never"
    return "once" if value == "1" else f"{value} times"


def _waited(row: Mapping[str, Any]) -> str:
    told = f"{_short(row['subject'])}: {row['total'] / row['ranks'] / 1e6:.3f} s a rank"
    if row["least"] == row["most"]:
        return told
    return (
        f"{told}, least {row['least'] / 1e6:.3f} s on rank {row['least_rank']}, "
        f"most {row['most'] / 1e6:.3f} s on rank {row['most_rank']}"
    )


def _silent(rows: Rows, began: float) -> Iterator[str]:
    """Those that ended alike, or were seen last at one place in one collective, share a line."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        where = tuple(row[key] for key in ("file", "line", "collectives", "op", "inside"))
        groups.setdefault((_stopped(row), *where), []).append(row)
    for turn, ((stopped, file, line, count, op, inside), alike) in enumerate(groups.items()):
        at = f" at {short(file)}:{line}" if file else ""
        stood = f", {'inside' if inside else 'past'} collective {count}, {op}" if count else ""
        first = " first" if not turn else ""
        seen = f"after {alike[0]['last'] - began:.1f} s{at}{stood}"
        yield f"{_named([row['rank'] for row in alike])} {stopped}{first}, {seen}"


def _stopped(row: Mapping[str, Any]) -> str:
    """`ended with exit code 7`, `failed with ValueError`, or `stopped` where there is no end."""
    if not row["closed"]:
        return "stopped"
    kind, _, error = row["how"].partition(": ")
    if error:
        return f"{kind} with {error}"
    return f"was {kind}" if kind == "interrupted" else f"ended with {kind}"


def _short(subject: str) -> str:
    """The path at its end as people say it."""
    head, at, place = subject.rpartition(" at ")
    return f"{head}{at}{short(place)}" if at else subject
