"""The Parquet export is for DuckDB, Polars, Spark and notebooks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO

from tensortrail.collector import without_collector
from tensortrail.tracer.exports.columns import columns_of
from tensortrail.tracer.exports.rows import Flat
from tensortrail.tracer.reading.process import Process
from tensortrail.tracer.reading.timeline import RunTimeline

ROWS_A_GROUP = 100_000
FEW_VALUES = (
    "process", "thread", "phase", "did", "op", "name", "device", "from_device", "dtype",
    "file", "function", "by_file", "by_function",
)  # fmt: skip


@without_collector()
def write(timeline: RunTimeline, out: str | os.PathLike[str] | BinaryIO) -> None:
    import pyarrow.parquet as pq

    where = out if not isinstance(out, (str, os.PathLike)) else os.fspath(out)
    table = events_of(timeline)
    with pq.ParquetWriter(
        where, table.schema, compression="zstd", use_dictionary=list(FEW_VALUES)
    ) as writer:
        writer.write_table(table, row_group_size=ROWS_A_GROUP)


def events_of(timeline: RunTimeline) -> Any:
    """All events as an Arrow table, in the order of time."""
    import pyarrow as pa

    schema = _schema(pa)
    tables = [_table(pa, schema, process) for process in timeline.processes]
    together = pa.concat_tables(tables)
    return together if len(tables) == 1 else together.sort_by("time")


def _table(pa: Any, schema: Any, process: Process) -> Any:
    columns = columns_of(process)
    arrays = [_array(pa, columns.get(field.name, []), field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def _array(pa: Any, column: Sequence[Any], kind: Any) -> Any:
    try:
        return pa.array(column, type=kind)
    except (OverflowError, pa.ArrowInvalid):  # numbers that no real run has
        most = 2**31 - 1 if kind == pa.int32() else 2**63 - 1
        return pa.array([_within(each, most) for each in column], type=kind)


def _within(value: Any, most: int) -> Any:
    if isinstance(value, tuple):
        return [_within(each, most) for each in value]
    return max(-most, min(value, most)) if isinstance(value, int) else value


def _schema(pa: Any) -> Any:
    whole, text = pa.int64(), pa.string()
    others = {
        "time": pa.float64(), "storage": whole, "other": whole, "bytes": whole,
        "shape": pa.list_(whole), "line": pa.int32(), "by_line": pa.int32(),
    }  # fmt: skip
    never_null = ("time", "process", "did")
    return pa.schema(
        [
            pa.field(name, others.get(name, text), nullable=name not in never_null)
            for name in Flat._fields
        ]
    )
