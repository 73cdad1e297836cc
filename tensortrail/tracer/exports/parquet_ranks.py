"""The Parquet form of a run of ranks: a folder of tables, each parted by rank.

    run.parquet/events/rank=0/part.parquet          the columns of `rows.Flat`
    run.parquet/ranks/rank=0/part.parquet           when it began, where it was seen last
    run.parquet/findings/rank=0/part.parquet
    run.parquet/collectives/rank=0/part.parquet     what ranks did together, and how long it took

Times are seconds since the first process of the run began. Each rank is written by itself."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tensortrail.collector import without_collector
from tensortrail.findings import Finding
from tensortrail.rules import Rule
from tensortrail.rules.timeline import Did
from tensortrail.tracer.exports.parquet import events_of
from tensortrail.tracer.reading.findings_of_run import findings_of_rank
from tensortrail.tracer.reading.process_end import End
from tensortrail.tracer.reading.ranks.ends import ends
from tensortrail.tracer.reading.ranks.many_ranks import rules_of, side_by_side
from tensortrail.tracer.reading.ranks.one_rank import rank_timeline
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.rank_files import RankFiles, RunFiles

EVENTS, RANKS, FINDINGS, COLLECTIVES = "events", "ranks", "findings", "collectives"
Table = list[dict[str, Any]]
TABLES = (EVENTS, RANKS, FINDINGS, COLLECTIVES)


def write(files: RunFiles, rules: Sequence[Rule], folder: str) -> list[str]:
    """What could not be read is returned; the folder appears when it is whole."""
    if not may_be_replaced(folder):
        raise FileExistsError(errno.EEXIST, "there is something else at this place")
    parent = os.path.dirname(os.path.abspath(folder))
    unfinished = tempfile.mkdtemp(dir=parent, prefix=".parquet-")
    try:
        codes = tuple(rule.code for rule in rules)
        ranks = [each for each in files.ranks if each.rank is not None]
        work = partial(_write_rank, unfinished, files.started, codes)
        trouble = [*files.trouble, *(line for each in side_by_side(ranks, work) for line in each)]
        shutil.rmtree(folder, ignore_errors=True)
        os.rename(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return trouble


def may_be_replaced(folder: str) -> bool:
    """Nothing is there, or the same form of an earlier time and nothing else."""
    if not os.path.lexists(folder):
        return True
    return is_of_ranks(folder) and set(os.listdir(folder)) <= set(TABLES)


def is_of_ranks(folder: str) -> bool:
    inside = (os.path.join(folder, each) for each in TABLES)
    return not os.path.islink(folder) and all(map(os.path.isdir, inside))


@without_collector()
def _write_rank(
    folder: str, started: float, codes: tuple[str, ...], files: RankFiles
) -> Sequence[str]:
    rank = rank_timeline(files)
    if rank is None:
        return ()
    judged = findings_of_rank(rank, rules_of(codes))
    _save(_events(rank, started), folder, EVENTS, files.rank)
    tables: Mapping[str, Table] = {
        RANKS: [_rank(rank, started)],
        FINDINGS: [_finding(each) for each in judged.findings],
        COLLECTIVES: list(_collectives(rank, started)),
    }
    for name, rows in tables.items():
        _save(_table(name, rows), folder, name, files.rank)
    return (*rank.trouble, *judged.problems)


def _events(rank: RunTimeline, started: float) -> Any:
    import pyarrow.compute as pc

    table = events_of(rank)
    place = table.schema.get_field_index("time")
    times = pc.add(table.column(place), rank.began - started)
    return table.set_column(place, table.schema.field(place), times)


def _rank(rank: RunTimeline, started: float) -> dict[str, Any]:
    last = max(_ends(rank, started), key=_seen)
    stand, site = last.stand, last.site
    return {
        "label": rank.label,
        "began": rank.began - started,
        "last": last.last,
        "events": sum(len(each.part.rows) for each in rank.processes),
        "closed": all(each.part.closed for each in rank.processes),
        "how": last.how or None,
        "file": site.file if site else None,
        "line": site.line if site else None,
        "collectives": stand.count if stand else None,
        "op": stand.op if stand else None,
        "inside": stand.inside if stand else None,
    }


def _ends(rank: RunTimeline, started: float) -> Iterator[End]:
    """Children of a rank end as they please, if they end."""
    for process, end in zip(rank.processes, ends(rank, rank.began - started), strict=True):
        is_child = process.part.header.get("parent") is not None
        yield replace(end, how="") if is_child and end.closed else end


def _seen(end: End) -> tuple[bool, bool, float]:
    """Of a rank and its children, one without an end tells more, then one that did not end well."""
    return not end.closed, bool(end.how), end.last


def _finding(each: Finding) -> dict[str, Any]:
    return {
        "code": each.code,
        "name": each.name,
        "severity": each.severity.value,
        "message": each.message,
        "file": each.site.file,
        "line": each.site.line,
    }


def _collectives(rank: RunTimeline, started: float) -> Iterator[dict[str, Any]]:
    later = rank.began - started
    for event in rank.iterate(Did.COLLECTIVE):
        site, facts = event.site or event.by, event.facts
        yield {
            "time": event.time + later,
            "number": _whole(facts.get("number")),
            "op": event.op,
            "file": site.file if site else None,
            "line": site.line if site else None,
            "took": _whole(facts.get("took")),
        }


def _whole(value: object) -> int:
    return value if isinstance(value, int) and abs(value) < 2**62 else 0


COLUMNS: Mapping[str, Mapping[str, str]] = {
    RANKS: {
        "label": "string", "began": "float64", "last": "float64", "events": "int64",
        "closed": "bool", "how": "string", "file": "string", "line": "int64",
        "collectives": "int64", "op": "string", "inside": "bool",
    },
    FINDINGS: {
        "code": "string", "name": "string", "severity": "string", "message": "string",
        "file": "string", "line": "int64",
    },
    COLLECTIVES: {
        "time": "float64", "number": "int64", "op": "string", "file": "string", "line": "int64",
        "took": "int64",
    },
}  # fmt: skip


def _table(name: str, rows: Iterable[dict[str, Any]]) -> Any:
    import pyarrow as pa

    kinds = {
        "string": pa.string(),
        "float64": pa.float64(),
        "int64": pa.int64(),
        "bool": pa.bool_(),
    }
    schema = pa.schema([(column, kinds[kind]) for column, kind in COLUMNS[name].items()])
    return pa.Table.from_pylist(list(rows), schema=schema)


def _save(table: Any, folder: str, name: str, rank: int | None) -> None:
    import pyarrow.parquet as pq

    inside = os.path.join(folder, name, f"rank={rank}")
    os.makedirs(inside, exist_ok=True)
    pq.write_table(table, os.path.join(inside, "part.parquet"), compression="zstd")
