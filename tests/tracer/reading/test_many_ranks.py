"""Many ranks are read one by one: what they share is said once, and who differs is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("msgpack")

from tensortrail.cli import main
from tensortrail.rules import Did, all_rules
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.ranks import many_ranks
from tensortrail.tracer.reading.ranks.many_ranks import readings
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.ranks.run_of_ranks import RunOfRanks
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.trail.rank_files import files_by_rank
from tests.tracer.exports.trails import Recording
from tests.tracer.many import many_ranks_in


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return many_ranks_in(tmp_path_factory.mktemp("ranks"))


@pytest.fixture(scope="module")
def together(folder: Path) -> RunOfRanks:
    rules = [rule() for rule in all_rules().values() if rule.default]
    return RunOfRanks.of(readings(files_by_rank(folder), rules))


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        ([0, 1], "rank 0, rank 1"),
        ([3], "rank 3"),
        ([0, 1, 2, 4], "ranks 0-2, 4"),
        ([*range(317), *range(318, 1024)], "ranks 0-316, 318-1023"),
    ],
)
def test_ranks_are_named_in_a_few_words(ranks: list[int], told: str) -> None:
    assert named(f"rank {each}" for each in ranks) == told


def test_what_is_the_same_is_said_once(together: RunOfRanks) -> None:
    back, there = (each.sentence for each in together.folding.folded("moves"))
    assert there.startswith("ranks 0-4, 6-7 only: 4.0 KB in 1 move, cpu -> cuda at ")
    assert there.endswith("train.py:4")
    assert back.startswith("ranks 0-7: 4.0 KB in 40 moves, cuda -> cpu at train.py:12 by ")


def test_a_rank_that_differs_is_named(together: RunOfRanks) -> None:
    (here,) = (each for each in together.folding.folded("devices") if each.subject == "cuda")
    assert here.sentence == (
        "ranks 0-7: 4.0 KB in 1 storage, at most 4.1 KB, cuda; "
        "rank 5 differs: 0 B in 0 storages, at most 100 B"
    )
    assert [(each.site.line, each.others) for each in together.differences()] == [(4, ("rank 5",))]
    assert together.shown() == ["rank 0", "rank 5"]


def test_findings_are_those_of_the_whole_run(folder: Path, together: RunOfRanks) -> None:
    whole = findings(open_run(folder)).findings
    assert [each.message.rpartition(", on ")[2] for each in whole] == ["rank 5 of 8 ranks"]
    assert list(whole) == together.findings()
    assert [each.evidence for each in whole] == [each.evidence for each in together.findings()]


def test_other_processes_read_the_same(
    folder: Path, together: RunOfRanks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_ranks, "WORTH_PROCESSES", 0)
    rules = [rule() for rule in all_rules().values() if rule.default]
    apart = RunOfRanks.of(readings(files_by_rank(folder), rules))
    assert apart == together


def test_every_report_says_it(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["report", str(folder)]) == 0
    text = capsys.readouterr().out
    assert "8 ranks" in text
    assert "all but rank 5: model.weight moved cpu -> cuda:0 by Tensor.to" in text
    assert "rank 5 differs: 0 B in 0 storages" in text
    assert "rank 2 has no end" in text
    assert main(["report", str(folder), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {each["evidence"]["process"] for each in found} == {"rank 5"}
    page = tmp_path / "page.html"
    assert main(["report", str(folder), "--format", "html", "-o", str(page)]) == 0
    data = json.loads(
        page.read_text(encoding="utf-8").partition('type="application/json">')[2].partition("<")[0]
    )
    assert data["ofRanks"]["shown"] == "rank 0, rank 5"
    assert any(
        "rank 5 differs" in line for _, lines in data["ofRanks"]["sections"] for line in lines
    )
    assert data["processes"] == ["rank 0", "rank 5"]


def test_a_file_that_is_no_trail_costs_the_others_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for each in folder.glob("*.trail"):
        (tmp_path / each.name).write_bytes(each.read_bytes())
    (tmp_path / "rank-9.trail").write_bytes(b"something else")
    assert main(["report", str(tmp_path), "--format", "findings"]) == 0
    assert "rank-9.trail: not a trail" in capsys.readouterr().err


def test_two_of_many_ranks_that_parted_are_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for rank in range(10):
            run = Recording(tmp_path, patch, f"rank-{rank}", rank=rank, pid=100 + rank, host="one")
            for number in range(1, 31):
                last = number == 30
                facts = {
                    "number": number,
                    "took": 9,
                    "sizes": ["float32 3x4" if last and rank == 7 else "float32 5x4"],
                    **({"failed": True} if last else {}),
                }
                site = ("train.py", 15, "main")
                run.did(Did.COLLECTIVE, op="all_gather", at=number, site=site, facts=facts)
            run.writer.close()
    assert main(["report", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "`all_gather` is given float32 5x4 in rank 0 and float32 3x4 in rank 7" in told
    main(["report", str(tmp_path), "--select", "DEV502"])
    assert "float32 3x4" not in capsys.readouterr().out
