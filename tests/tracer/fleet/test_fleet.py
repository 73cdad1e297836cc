"""Questions across ranks, asked of the Parquet form: which differ, and which stopped first."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("pyarrow")

from tensortrail.cli import main
from tensortrail.rules import all_rules
from tensortrail.tracer.exports import jsonl, parquet_ranks
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.trail.rank_files import files_by_rank
from tests.tracer.many import GONE, ODD, RANKS, SILENT, many_ranks_in

OTHERS = RANKS - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_ranks_in(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(scope="module")
def written(folder: Path) -> str:
    made = str(folder / "run.parquet")
    rules = [rule() for rule in all_rules().values() if rule.default]
    parquet_ranks.write(files_by_rank(folder), rules, made)
    return made


@pytest.fixture(scope="module")
def told(written: str) -> Any:
    pytest.importorskip("ibis", reason="fleet asks Ibis: pip install 'tensortrail[fleet]'")
    from tensortrail.tracer.fleet import answers, tables

    return answers.answers(tables.opened(written, "duckdb"))


def test_the_form_has_the_events_of_each_rank(folder: Path, written: str, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    jsonl.write(open_run(folder), tmp_path / "run.jsonl")
    lines = map(json.loads, (tmp_path / "run.jsonl").read_text().splitlines())
    expected = [row for row in lines if row["process"] == f"rank {ODD}"]
    own = pq.ParquetFile(f"{written}/events/rank={ODD}/part.parquet").read().to_pylist()
    assert [{**row, "time": 0} for row in own] == [{**row, "time": 0} for row in expected]
    assert sorted(path.name for path in Path(written, "findings").iterdir()) == [
        f"rank={n}" for n in range(RANKS)
    ]


def test_nothing_else_is_written_over(folder: Path, written: str, tmp_path: Path) -> None:
    files, foreign = files_by_rank(folder), tmp_path / "mine"
    parquet_ranks.write(files, [], str(tmp_path / "again"))
    parquet_ranks.write(files, [], str(tmp_path / "again"))
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("words")
    with pytest.raises(FileExistsError):
        parquet_ranks.write(files, [], str(foreign))
    assert (foreign / "thesis.txt").read_text() == "words"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["again", "mine"]


def test_who_differs(told: Any) -> None:
    (placed,) = told["placement"]
    assert placed == {
        "subject": "model.weight on cuda", "rank": ODD, "value": "none", "usual": "there",
        "usual_ranks": OTHERS,
    }  # fmt: skip
    (moved,) = told["moves"]
    assert (moved["rank"], moved["value"], moved["usual"]) == (ODD, "none", "4000 1")
    (found,) = told["findings"]
    assert (found["rank"], found["value"], found["usual"]) == (ODD, "1", "none")
    assert not told["collectives"]


def test_who_came_last_and_who_fell_silent(told: Any) -> None:
    (waits,) = told["waits"]
    assert waits["subject"] == "all_reduce at train.py:15"
    assert (waits["least_rank"], waits["least"]) == (ODD, 4000)
    assert (waits["most_rank"], waits["most"]) == (RANKS - 1, 40 * (5000 + RANKS - 1))
    gone, silent = sorted(told["silent"], key=lambda row: row["closed"], reverse=True)
    assert (silent["rank"], silent["op"], silent["inside"]) == (SILENT, "all_reduce", True)
    assert (gone["rank"], gone["closed"], gone["how"]) == (GONE, True, "exit code 3")


def test_the_command(
    folder: Path, written: str, told: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "rank 5: model.weight on cuda: never; 7 other ranks: yes" in text
    assert (
        "rank 5: cpu -> cuda at train.py:4: nothing moved; 7 other ranks: 4.0 KB in 1 move" in text
    )
    assert "least 0.004 s on rank 5" in text
    assert "rank 2 stopped" in text
    assert "rank 6 ended with exit code 3" in text
    assert main(["fleet", written, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["placement"] == told["placement"]


def test_without_ibis_it_says_what_to_install(
    written: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ibis", None)
    assert main(["fleet", written]) == 2
    assert "pip install 'tensortrail[fleet]'" in capsys.readouterr().err


def test_a_run_of_one_process_is_no_fleet(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.trail").write_bytes((folder / "rank-0.trail").read_bytes())
    assert main(["fleet", str(tmp_path)]) == 2
    assert "a run of one process" in capsys.readouterr().err


@pytest.mark.complete
def test_spark_gives_the_same_rows(written: str, told: Any) -> None:
    pytest.importorskip("pyspark", reason="needs pyspark and Java")
    from tensortrail.tracer.fleet import answers, tables

    assert answers.answers(tables.opened(written, "pyspark")) == told


def test_every_question_is_written_for_spark(written: str, told: Any) -> None:
    """Without Java too; Ibis knows how only where PySpark is installed."""
    pytest.importorskip("pyspark", reason="needs pyspark")
    import ibis

    from tensortrail.tracer.fleet import questions, tables

    opened = tables.opened(written, "duckdb")
    for ask in questions.QUESTIONS.values():
        assert "SELECT" in ibis.to_sql(ask(opened), dialect="pyspark")
