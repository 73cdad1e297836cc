"""Events that have much in common are written short, and read as the long ones."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.trail.layout import CODE, FREED, KIND, SHORT, STORAGE
from tensortrail.tracer.trail.part import Part
from tensortrail.tracer.trail.reader import read_part
from tensortrail.tracer.trail.writer import TrailWriter

from .samples import HEADER, frame, trail_of

MOVE, COPY, FREE, RESIZE = (CODE[each] for each in (Did.MOVE, Did.COPY, Did.FREE, Did.RESIZE))


def writing(folder: Path, limit: int = 1 << 30) -> tuple[TrailWriter, Path]:
    path = folder / "t.trail"
    return TrailWriter(str(path), HEADER, limit), path


def known(part: Part) -> list[tuple[Any, ...]]:
    """Its events without their times."""
    return [(row[0], *row[2:]) for row in part.rows]


def test_short_events_are_read_as_long_ones(tmp_path: Path) -> None:
    writer, path = writing(tmp_path)
    context, site = writer.context("main", "run"), writer.site("a.py", 3, "f", ("", 0, ""))
    op = writer.text("Tensor.to")
    described = writer.description("meta", 16, "float32", (4,), "")
    source = writer.storage("cpu", 16, "float32", (4,), "")
    made, old = (writer.kind(MOVE, context, site, op, each) for each in (described, ()))
    grown = writer.kind(RESIZE, context, site, op, (), {"before": 0, "after": 16})
    first, second = (next(writer.storage_numbers) for _ in range(2))
    writer.short(made, first, source)
    writer.event(COPY, context, site, first, source)
    writer.short(old, first, source)
    writer.short(FREED, first)
    writer.short(made, second, source)
    writer.short(grown, second)
    writer.close()
    part = read_part(str(path))
    assert not part.damage
    assert part.closed
    assert known(part) == [
        (MOVE, context, site, first, source, op, {}),
        (COPY, context, site, first, source, 0, {}),
        (MOVE, context, site, first, source, op, {}),
        (FREE, 0, 0, first, 0, 0, {}),
        (MOVE, context, site, second, source, op, {}),
        (RESIZE, context, site, second, 0, op, {"before": 0, "after": 16}),
    ]
    assert part.storages[first] == (STORAGE, first, *described)
    assert part.storages[second] == (STORAGE, second, *described)
    assert [row[1] for row in part.rows] == sorted(row[1] for row in part.rows)


def test_long_rows_of_short_events_become_frames(tmp_path: Path) -> None:
    writer, path = writing(tmp_path)
    kind = writer.kind(MOVE, 1, 1, 1)
    for number in range(20_000):
        writer.short(kind, number, 1)
    writer.close()
    part = read_part(str(path))
    assert not part.damage
    assert [row[4] for row in part.rows] == [*range(20_000)]
    assert writer.events == 20_000


def test_rows_stay_short_while_another_thread_writes(tmp_path: Path) -> None:
    writer, path = writing(tmp_path)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with writer._lock:
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    for number in range(20_000):
        writer.short(FREED, number)
    release.set()
    thread.join()
    writer.close()
    part = read_part(str(path))
    assert not part.damage
    assert len(part.rows) == 20_000


def test_each_frame_says_its_kinds_anew(tmp_path: Path) -> None:
    writer, path = writing(tmp_path)
    for number in (1, 2):
        writer.kinds["so"] = writer.kind(MOVE, 1, 1, 1)
        writer.short(writer.kinds["so"], number)
        writer.flush()
        assert not writer.kinds
    writer.close()
    assert [row[4] for row in read_part(str(path)).rows] == [1, 2]


def test_what_a_thread_adds_to_a_written_row_comes_later(tmp_path: Path) -> None:
    writer, path = writing(tmp_path)
    writer.short(FREED, 1)
    row = writer._short
    writer.flush()
    row += (FREED, 5, 2, 0)
    writer.short(FREED, 3)
    writer.flush()
    writer.close()
    part = read_part(str(path))
    assert not part.damage
    assert sorted(row[4] for row in part.rows) == [1, 2, 3]


@pytest.mark.parametrize("limit", [2_000, 20_000])
def test_what_was_dropped_is_counted(tmp_path: Path, limit: int) -> None:
    writer, path = writing(tmp_path, limit)
    kind = writer.kind(MOVE, 1, 1, 1)
    number = 0
    while not writer.thinner.active:
        number += 1
        writer.short(kind, number * 7919, number * 104729)
        writer.short(FREED, number)
    writer.close()
    part = read_part(str(path))
    assert path.stat().st_size <= limit + 500
    assert len(part.rows) + sum(part.dropped.values()) == writer.events == 2 * number


def test_dropped_short_events_are_told_by_their_kind(tmp_path: Path) -> None:
    writer, path = writing(tmp_path)
    writer._frames._limit = 0  # as if it were full by now
    kind = writer.kind(MOVE, 1, 1, 1)
    writer.short(kind, 1)
    writer.short(FREED, 1)
    writer.short(kind, 2)
    writer.close()
    assert read_part(str(path)).dropped == {"move": 2, "free": 1}


BROKEN = {
    "a kind of nothing": (KIND, 1, 3, 0, 0, 0, ()),
    "a kind without an end": (KIND, 1, MOVE, 0, 0),
    "a described kind without a shape": (KIND, 1, MOVE, 0, 0, 0, (1, 2, 3, 4, 5)),
    "a shape of texts": (KIND, 1, MOVE, 0, 0, 0, (1, 2, 3, ("x",), 5)),
    "facts that are none": (KIND, 1, MOVE, 0, 0, 0, (), 7),
    "an event cut off": (SHORT, FREED, 1, 2),
    "an event of texts": (SHORT, FREED, "1", 2, 0),
    "an unknown kind": (SHORT, 9, 1, 2, 0),
}


@pytest.mark.parametrize("row", BROKEN.values(), ids=BROKEN)
def test_what_makes_no_sense_is_told(tmp_path: Path, row: Any) -> None:
    path = trail_of(tmp_path / "t.trail", [row, (SHORT, FREED, 7, 4, 0)])
    part = read_part(str(path))
    assert part.rows == [(FREE, 7, 0, 0, 4, 0, 0, {})]
    assert "rows of a form unknown" in part.damage
    assert part.kinds.keys() == {FREED}


def test_a_damaged_frame_takes_no_other_with_it(tmp_path: Path) -> None:
    kind = (KIND, 1, MOVE, 0, 0, 0, ())
    path = trail_of(tmp_path / "t.trail", [kind, (SHORT, 1, 1, 4, 0)], [kind, (SHORT, 1, 2, 5, 0)])
    whole = frame([kind, (SHORT, 1, 1, 4, 0)])
    data = path.read_bytes()
    place = data.index(whole) + len(whole) - 1
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    part = read_part(str(path))
    assert "damaged" in part.damage
    assert [row[4] for row in part.rows] == [5]


def test_a_recorded_loop_is_whole(tmp_path: Path) -> None:
    running = begin(tmp_path / "run")
    ones, kept = torch.ones(4), []
    for number in range(5000):
        made = ones.to("meta")
        if number % 1000 == 0:
            kept.append(made)
    running.stop()
    timeline = open_run(tmp_path / "run")
    moves = [event for event in timeline.events() if event.did is Did.MOVE]
    freed = [event for event in timeline.events() if event.did is Did.FREE]
    assert len(moves) == 5000
    assert len({event.storage for event in moves}) == 5000
    assert {(event.storage.device, event.storage.shape) for event in moves if event.storage} == {
        ("meta", (4,))
    }
    assert {event.other.device for event in moves if event.other} == {"cpu"}
    assert 4990 <= len(freed) <= 4996
    assert not timeline.trouble


def test_trails_of_the_first_version_are_read(tmp_path: Path) -> None:
    writer, path = writing(tmp_path)
    writer.event(FREE, 0, 0, 4)
    writer.close()
    path.write_bytes(path.read_bytes().replace(b"TENSORTRAIL 2", b"TENSORTRAIL 1", 1))
    assert known(read_part(str(path))) == [(FREE, 0, 0, 4, 0, 0, {})]
