"""What a run comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Site
from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import open_run

from ..exports.trails import LIBRARY, NOWHERE, USER, Recording, small_run

Patch = pytest.MonkeyPatch


def test_moves_are_gathered_by_line_and_device(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    for at in range(3):
        run.did(Did.MOVE, run.storage("cuda:0", 70), run.storage("cpu", 70), op="to", at=at)
    back = run.storage("cpu", 500)
    run.did(Did.MOVE, back, run.storage("cuda:0", 500), op="cpu", by=LIBRARY, at=4)
    run.did(Did.COPY, run.storage("cpu", 9000), back, op="copy_")
    run.did(Did.COPY, run.storage("cuda:0", 9000), back, op="copy_", at=5)
    found = Summary(run.read()).moves_by_line
    user = Site(USER[0], USER[1], function=USER[2])
    library = Site(LIBRARY[0], LIBRARY[1], function=LIBRARY[2])
    assert [
        (m.site, m.by, m.op, m.source, m.target, m.count, m.nbytes, m.first) for m in found
    ] == [
        (user, library, "cpu", "cuda:0", "cpu", 1, 500, 4),
        (user, None, "copy_", "cpu", "cuda:0", 1, 500, 5),
        (user, None, "to", "cpu", "cuda:0", 3, 210, 0),
    ]


def test_what_lies_where_at_the_end_and_at_most(tmp_path: Path, monkeypatch: Patch) -> None:
    summary = Summary(small_run(tmp_path, monkeypatch))
    use = {each.device: each for each in summary.alive_by_device}
    assert list(use) == ["cuda:0", "meta", "cpu"]
    assert (use["cuda:0"].nbytes, use["cuda:0"].count, use["cuda:0"].peak) == (400, 1, 400)
    assert (use["cpu"].nbytes, use["cpu"].count, use["cpu"].peak) == (0, 0, 400)
    assert use["cpu"].peak_time == 0.5
    assert [storage.nbytes for storage in use["meta"].largest] == [80]
    assert summary.seconds == 4


def test_a_resized_storage_counts_with_its_new_size(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    storage = run.storage("cpu", 100)
    run.did(Did.CREATE, storage, at=0)
    run.did(Did.RESIZE, storage, at=1, facts={"before": 100, "after": 900})
    run.did(Did.RESIZE, storage, at=2, facts={"before": 900, "after": 0})
    summary = Summary(run.read())
    level = summary.levels["cpu"]
    assert [level.at(time) for time in (-1, 0, 0.9, 1, 1.5, 2)] == [0, 100, 100, 900, 900, 0]
    assert summary.alive_by_device[0].nbytes == 0
    assert summary.alive_by_device[0].peak == 900


def test_bytes_over_time_keep_the_peak_of_each_step(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    kept, brief = run.storage("cpu", 10), run.storage("cpu", 1000)
    run.did(Did.CREATE, kept, at=0)
    run.did(Did.CREATE, brief, at=2.1)
    run.did(Did.FREE, brief, at=2.2)
    run.did(Did.FREE, kept, at=8)
    [curve] = Summary(run.read()).bytes_over_time(points=4)
    assert curve.peaks == (10, 1010, 10, 10)


def test_phases_with_their_peaks(tmp_path: Path, monkeypatch: Patch) -> None:
    load, train = Summary(small_run(tmp_path, monkeypatch)).phases
    assert (load.name, load.start, load.end, load.ended) == ("load", 0, 2, True)
    assert load.peaks == {"cpu": 400, "cuda:0": 400, "meta": 0}
    assert (train.name, train.start, train.end, train.ended) == ("train", 2, 4, False)
    assert train.peaks == {"cpu": 0, "cuda:0": 400, "meta": 80}


def test_phases_nest_and_end_with_those_around_them(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    facts = [("began", "train"), ("began", "save"), ("began", "lost"), ("ended", "save")]
    for at, (how, name) in enumerate(facts):
        run.did(Did.PHASE, at=at, facts={how: name})
    run.thread = "other"
    run.did(Did.PHASE, at=5, facts={"ended": "never began"})
    found = Summary(run.read()).phases
    assert [(p.name, p.start, p.end, p.depth) for p in found] == [
        ("train", 0, 5, 0),
        ("save", 1, 3, 1),
        ("lost", 2, 3, 2),
    ]


def test_a_phase_in_one_of_the_same_name_is_no_other(tmp_path: Path, monkeypatch: Patch) -> None:
    run = Recording(tmp_path, monkeypatch)
    facts = ["began save", "began save", "began copy", "ended copy", "ended save", "ended save"]
    for at, each in enumerate(facts):
        how, name = each.split()
        run.did(Did.PHASE, at=at, facts={how: name})
    found = Summary(run.read()).phases
    assert [(p.name, p.start, p.end, p.depth) for p in found] == [
        ("save", 0, 5, 0),
        ("copy", 2, 3, 1),
    ]


def test_meetings_errors_and_counts(tmp_path: Path, monkeypatch: Patch) -> None:
    summary = Summary(small_run(tmp_path, monkeypatch))
    assert [event.op for event in summary.meetings] == ["add"]
    assert [event.facts["message"] for event in summary.errors] == ["two devices"]
    assert summary.counts[Did.PHASE] == 3
    assert sum(summary.counts.values()) == 10


def _two(folder: Path, monkeypatch: Patch, *headers: dict[str, object]) -> Summary:
    """The run of two processes that do the same."""
    for place, header in enumerate(headers):
        run = Recording(folder, monkeypatch, f"p{place}", **header)
        source = run.storage("cpu", 8)
        run.did(Did.CREATE, source, site=NOWHERE, at=0)
        run.did(Did.MOVE, run.storage("cuda:0", 8), source, op="to", at=1)
        run.writer.close()
    return Summary(open_run(folder))


def test_processes_of_a_rank_add_up(tmp_path: Path, monkeypatch: Patch) -> None:
    summary = _two(tmp_path, monkeypatch, {"rank": 1}, {"rank": 1, "worker": "loader"})
    assert [(m.count, m.nbytes) for m in summary.moves_by_line] == [(2, 16)]
    assert summary.levels["cuda:0"].peak == 16
    assert [use.count for use in summary.alive_by_device] == [2, 2]


def test_devices_of_ranks_are_different_ones(tmp_path: Path, monkeypatch: Patch) -> None:
    summary = _two(tmp_path, monkeypatch, {"rank": 0}, {"rank": 1})
    assert [(m.count, m.nbytes) for m in summary.moves_by_line] == [(2, 16)]
    devices = ["cpu (rank 0)", "cpu (rank 1)", "cuda:0 (rank 0)", "cuda:0 (rank 1)"]
    assert sorted(summary.levels) == devices
    assert [summary.levels[each].peak for each in devices] == [8, 8, 8, 8]
    assert [use.count for use in summary.alive_by_device] == [1, 1, 1, 1]


def test_a_forked_process_does_not_hold_what_its_parent_holds(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    parent = Recording(tmp_path, monkeypatch, "parent")
    shared = parent.storage("cpu", 100)
    parent.did(Did.CREATE, shared, at=0)
    parent.writer.close()
    child = Recording(tmp_path, monkeypatch, "child", pid=8, parent=7, first_storage=2)
    child.writer.again(shared, "cpu", 100, "float32", (25,), "")
    child.did(Did.SAVE, shared, at=1)
    child.did(Did.RESIZE, shared, at=1, facts={"before": 100, "after": 900})
    child.did(Did.FREE, shared, at=2)
    child.did(Did.CREATE, child.storage("cpu", 5), at=3)
    child.writer.close()
    summary = Summary(open_run(tmp_path))
    assert summary.levels["cpu"].nbytes == [100, 105]
    assert summary.alive_by_device[0].count == 2


def test_a_run_without_events(tmp_path: Path, monkeypatch: Patch) -> None:
    summary = Summary(Recording(tmp_path, monkeypatch).read())
    assert summary.seconds == 0
    assert not summary.moves_by_line
    assert not summary.alive_by_device
    assert not summary.bytes_over_time()
    assert not summary.phases
