"""JSON lines and Parquet: the same rows, as docs/trail.md says."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tensortrail.rules.timeline import Did
from tensortrail.tracer.exports import jsonl, parquet
from tensortrail.tracer.exports.rows import Flat, plain
from tensortrail.tracer.reading.timeline import RunTimeline

from .trails import HOSTILE, LIBRARY, USER, Recording, small_run

Patch = pytest.MonkeyPatch
DOCS = Path(__file__).parents[3] / "docs" / "trail.md"


def lines(timeline: RunTimeline) -> list[dict[str, Any]]:
    out = io.StringIO()
    jsonl.write(timeline, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_an_event_is_a_line(tmp_path: Path, monkeypatch: Patch) -> None:
    rows = lines(small_run(tmp_path, monkeypatch))
    assert [row["did"] for row in rows] == (
        "phase load move free phase phase create meet error save".split()
    )
    move = rows[2]
    assert list(move) == list(Flat._fields)
    assert move == {
        "time": 1.0, "process": "main", "thread": "MainThread", "phase": None, "did": "move",
        "op": "to", "storage": 2, "other": 1, "name": "model.weight", "device": "cuda:0",
        "from_device": "cpu", "bytes": 400, "dtype": "float32", "shape": [10, 10],
        "file": USER[0], "line": USER[1], "function": USER[2], "by_file": LIBRARY[0],
        "by_line": LIBRARY[1], "by_function": LIBRARY[2], "facts": None,
    }  # fmt: skip
    assert json.loads(rows[1]["facts"]) == {"path": "w.safetensors"}
    assert rows[3]["file"] is None
    assert rows[4]["storage"] is None


def test_parquet_holds_the_same_rows(tmp_path: Path, monkeypatch: Patch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    timeline = small_run(tmp_path, monkeypatch)
    parquet.write(timeline, tmp_path / "run.parquet")
    assert pq.read_table(tmp_path / "run.parquet").to_pylist() == lines(timeline)


def test_parquet_is_written_in_groups(tmp_path: Path, monkeypatch: Patch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet, "ROWS_A_GROUP", 4)
    with open(tmp_path / "run.parquet", "wb") as out:
        parquet.write(small_run(tmp_path, monkeypatch), out)
    metadata = pq.read_metadata(tmp_path / "run.parquet")
    sizes = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    assert sizes == [4, 4, 2]


def test_an_empty_run_is_an_empty_table(tmp_path: Path, monkeypatch: Patch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    timeline = Recording(tmp_path, monkeypatch).read()
    parquet.write(timeline, tmp_path / "run.parquet")
    assert pq.read_table(tmp_path / "run.parquet").column_names == list(Flat._fields)
    assert lines(timeline) == []


def test_the_documented_query_runs(tmp_path: Path, monkeypatch: Patch) -> None:
    pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    parquet.write(small_run(tmp_path, monkeypatch), tmp_path / "run.parquet")
    found = re.search(r"```sql\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    monkeypatch.chdir(tmp_path)
    assert duckdb.sql(found[1]).fetchall() == [("train.py", 12, "to", "cpu", "cuda:0", 1, 400)]


def test_duckdb_reads_the_lines_too(tmp_path: Path, monkeypatch: Patch) -> None:
    duckdb = pytest.importorskip("duckdb")
    jsonl.write(small_run(tmp_path, monkeypatch), tmp_path / "run.jsonl")
    query = f"SELECT did, facts->>'path' FROM '{tmp_path}/run.jsonl' WHERE facts LIKE '%path%'"
    assert duckdb.sql(query).fetchall() == [("load", "w.safetensors"), ("save", "out.pt")]


def test_every_column_and_kind_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert all(f"`{word}`" in text for word in (*Flat._fields, *(did.value for did in Did)))


def test_hostile_text_stays_text(tmp_path: Path, monkeypatch: Patch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    run = Recording(tmp_path, monkeypatch)
    storage = run.storage(HOSTILE, 1, HOSTILE, HOSTILE, kind=HOSTILE)
    facts = {"a": float("nan"), "b": [b"\xff", float("inf")], HOSTILE: HOSTILE}
    run.did(Did.SAVE, storage, op=HOSTILE, site=(HOSTILE, 1, HOSTILE), facts=facts)
    timeline = run.read()
    out = io.StringIO()
    jsonl.write(timeline, out)
    assert out.getvalue().isascii()
    assert len(out.getvalue().splitlines()) == 1
    [row] = lines(timeline)
    assert row["name"] == row["op"] == row["device"] == HOSTILE
    told = json.loads(row["facts"], parse_constant=pytest.fail)
    assert told == {"a": None, "b": ["b'\\xff'", None], HOSTILE: HOSTILE}
    parquet.write(timeline, tmp_path / "run.parquet")
    assert pq.read_table(tmp_path / "run.parquet").to_pylist() == [row]


def test_numbers_beyond_the_columns_are_cut(tmp_path: Path, monkeypatch: Patch) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    run = Recording(tmp_path, monkeypatch)
    huge = run.storage("cpu", 2**64 - 1, shape=(2**63, 1))
    run.did(Did.CREATE, huge, site=("x.py", 2**40, "f"))
    run.did(Did.CREATE, run.storage("cpu", 7))
    parquet.write(run.read(), tmp_path / "run.parquet")
    first, second = pq.read_table(tmp_path / "run.parquet").to_pylist()
    assert (first["bytes"], first["line"], first["shape"]) == (2**63 - 1, 2**31 - 1, [2**63 - 1, 1])
    assert (second["bytes"], second["line"], second["shape"]) == (7, 12, [5, 5])


def test_facts_of_any_depth_end() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert json.dumps(plain(deep)).count("[") < 30


def test_exports_import_neither_torch_nor_pyarrow() -> None:
    names = "jsonl parquet perfetto page_storages rows output html".split()
    code = f"""
import importlib, sys
for name in {names!r}:
    importlib.import_module("tensortrail.tracer.exports." + name)
importlib.import_module("tensortrail.tracer.reading.summary")
assert not {{"torch", "pyarrow", "rich"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
