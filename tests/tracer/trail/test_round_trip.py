"""What is written is read."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortrail.rules.timeline import Did
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.trail.numbering import LONGEST_TEXT
from tensortrail.tracer.trail.reader import read_part
from tensortrail.tracer.trail.writer import TrailWriter

from .samples import HEADER, looked_at, whole, written

texts = st.text(max_size=30)
counts = st.integers(0, 2**63)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
events = st.tuples(
    st.sampled_from(list(Did)),
    st.tuples(texts, texts),
    st.tuples(texts, st.integers(1, 10**6), texts, texts, st.integers(0, 10**6), texts),
    st.tuples(texts, counts, texts, st.lists(counts, max_size=4), texts, texts),
    texts,
    st.dictionaries(texts, plain, max_size=3),
)


@settings(max_examples=60)
@given(st.lists(events, max_size=6))
def test_events_come_back_as_they_were(given_events: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        writer = TrailWriter(f"{folder}/t.trail", HEADER, 1 << 30)
        for did, context, (file, line, function, *by), storage, op, facts in given_events:
            device, nbytes, dtype, shape, kind, name = storage
            number = writer.storage(device, nbytes, dtype, tuple(shape), kind)
            writer.name(number, name)
            place = writer.site(file, line, function, (by[0], by[1], by[2]))
            numbers = (writer.context(*context), place, number, number, writer.text(op))
            writer.event(CODE[did], *numbers, facts)
        writer.close()
        timeline = looked_at(Path(folder))
    assert timeline is not None
    assert not timeline.trouble
    assert timeline.parts[0].closed
    read = list(timeline.events())
    assert len(read) == len(given_events)
    for event, (did, context, site, storage, op, facts) in zip(read, given_events, strict=True):
        assert (event.did, event.op) == (did, op)
        assert (event.thread, event.phase) == context
        assert event.storage is not None
        device, nbytes, dtype, shape, kind, name = storage
        assert (event.storage.device, event.storage.nbytes) == (device, nbytes)
        assert (event.storage.dtype, event.storage.type_name) == (dtype, kind)
        assert event.storage.shape == tuple(shape)
        assert event.other == event.storage
        if name:
            assert timeline.name(event.storage) == name
        if site[0]:
            assert event.site is not None
            assert (event.site.file, event.site.line, event.site.function) == site[:3]
        assert bool(event.by) == bool(site[3])
        assert event.facts == _as_tuples(facts)


def _as_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_tuples(each) for key, each in value.items()}
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def test_every_kind_of_event(tmp_path: Path) -> None:
    whole(tmp_path / "t.trail")
    timeline = looked_at(tmp_path)
    assert timeline is not None
    assert [event.did for event in timeline.events()] == [*Did, Did.FREE]


def test_what_cannot_be_packed_costs_nothing_else(tmp_path: Path) -> None:
    writer = written(tmp_path / "t.trail")
    deep: Any = "end"
    for _ in range(2000):
        deep = [deep]
    for facts in ({"big": 1 << 70}, {"thing": object()}, {"text": "\udcff"}, {"deep": deep}):
        writer.event(CODE[Did.ERROR], 0, 0, 1, facts=facts)
    writer.event(CODE[Did.SAVE], 0, 0, 1)
    writer.close()
    part = read_part(str(tmp_path / "t.trail"))
    assert not part.damage
    assert [row[7] for row in part.rows[-4:]] == [
        {"big": "int"},
        {"thing": "object"},
        {"text": "?"},
        {},
    ]
    assert part.dropped == {"error": 1}
    assert "could not be written" in writer.fault


def test_endless_names_stay_short(tmp_path: Path) -> None:
    writer = written(tmp_path / "t.trail")
    writer.name(1, "x" * 10**7)
    writer.close()
    assert (tmp_path / "t.trail").stat().st_size < 10_000
    assert (
        read_part(str(tmp_path / "t.trail")).texts[writer.text("x" * 10**7)] == "x" * LONGEST_TEXT
    )


@pytest.mark.complete  # 10 MB of text
def test_enormous_frames_are_written_in_pieces(tmp_path: Path) -> None:
    writer = written(tmp_path / "t.trail")
    for _ in range(40):
        writer.event(CODE[Did.ERROR], 0, 0, 1, facts={"message": "x" * 10**6})
    writer.event(CODE[Did.ERROR], 0, 0, 1, facts={"message": "x" * 10**8})
    writer.close()
    part = read_part(str(tmp_path / "t.trail"))
    assert not part.damage
    assert sum(len(row[7].get("message", "")) == 10**6 for row in part.rows) == 40
    assert part.dropped == {"error": 1}


def test_rows_of_threads_are_read_in_order_of_time(tmp_path: Path) -> None:
    writer = written(tmp_path / "t.trail")
    late = [(CODE[Did.SAVE], 10_000_000 - n, 0, 0, 1) for n in range(100)]
    writer._rows += late
    writer.close()
    times = [row[1] for row in read_part(str(tmp_path / "t.trail")).rows]
    assert times == sorted(times)
    assert times[-100:] == [9_999_901 + n for n in range(100)]
