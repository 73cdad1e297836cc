"""Files cut off, damaged or made to harm: a clear message or a part of it, and nothing else."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.trail.layout import CODE, FRAME, LONGEST_FRAME, MAGIC, SUFFIX
from tensortrail.tracer.trail.reader import NotATrail, read_part

from .samples import HEADER, frame, looked_at, sealed, trail_of, whole, written

pytestmark = pytest.mark.long

CREATE = CODE[Did.CREATE]


def test_cut_off_at_every_byte(tmp_path: Path) -> None:
    data = whole(tmp_path / "whole.trail")
    cut = tmp_path / "cut.trail"
    seams, read = list(_seams(data)), []
    for length in range(len(data)):
        cut.write_bytes(data[:length])
        timeline = looked_at(cut)
        if timeline is None:
            assert length < len(MAGIC)
            continue
        read.append(len(timeline.events()))
        assert length in seams or f"{cut}: cut off" in timeline.trouble[0]
    assert read == sorted(read)
    assert read[-1] == len(Did) + 1


def _seams(data: bytes) -> Iterator[int]:
    """Where frames begin."""
    place = len(MAGIC)
    while place < len(data):
        yield place
        place += FRAME.size + FRAME.unpack_from(data, place)[0]


@settings(max_examples=100)
@given(st.sets(st.floats(0, 1, exclude_max=True), min_size=1, max_size=3), st.integers(0, 7))
def test_flipped_bits(places: set[float], bit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.trail"
        writer = written(path)
        for _ in range(5):
            writer.flush()
            writer.event(CREATE, 0, 0, 1)
        writer.close()
        content = bytearray(path.read_bytes())
        for place in {len(MAGIC) + int(each * (len(content) - len(MAGIC))) for each in places}:
            content[place] ^= 1 << bit
        path.write_bytes(bytes(content))
        timeline = looked_at(path)
        assert timeline is not None
        assert "damaged" in timeline.trouble[0] or "cut off" in timeline.trouble[0]


def test_a_damaged_frame_costs_only_itself(tmp_path: Path) -> None:
    path = trail_of(
        tmp_path / "t.trail", [(CREATE, 1, 0, 0, 1)], [(CREATE, 2, 0, 0, 1)], [(CREATE, 3, 0, 0, 1)]
    )
    data = path.read_bytes()
    place = data.index(frame([(CREATE, 2, 0, 0, 1)])) + FRAME.size
    path.write_bytes(data[:place] + b"\xff" + data[place + 1 :])
    part = read_part(str(path))
    assert [row[1] for row in part.rows] == [1, 3]
    assert f"damaged at byte {place - FRAME.size}" in part.damage


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=3))
    | st.builds(msgpack.Timestamp, st.integers(0, 2**33)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3) | st.binary(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
facts = st.dictionaries(
    st.sampled_from(["before", "after", "began", "ended", "devices", "operands", "message", "type",
                     "path", "key", "why", "next", "held", "storages", "class"]),
    anything,
)  # fmt: skip
numbers = st.integers(0, 4) | st.integers(-(2**63), 2**64 - 1)
likely_rows = st.one_of(
    st.tuples(st.just(0), numbers, st.text(max_size=4)),
    st.tuples(st.just(1), *[numbers] * 7),
    st.tuples(st.just(2), *[numbers] * 3),
    st.tuples(st.just(3), *[numbers] * 4, st.lists(numbers, max_size=3), numbers),
    st.tuples(st.just(4), numbers, numbers),
    st.tuples(st.sampled_from(sorted(CODE.values())), *[numbers] * 6, facts),
    st.tuples(st.just(6), numbers, st.sampled_from(sorted(CODE.values())), *[numbers] * 3,
              st.just(()) | st.tuples(*[numbers] * 3, st.lists(numbers, max_size=3), numbers)),
    st.tuples(st.just(6), *[numbers] * 5, anything),
    st.lists(numbers, max_size=9).map(lambda rest: [7, *rest]),
    st.tuples(st.just(7), anything, anything),
    st.tuples(st.integers(-5, 300), anything, anything),
    st.fixed_dictionaries({"version": anything, "start": anything, "rank": anything,
                           "pid": anything, "worker": anything, "run": st.just("r"),
                           "parent": anything, "first_storage": anything, "argv": anything}),
    st.fixed_dictionaries({"end": anything, "dropped": anything}),
    anything,
)  # fmt: skip


@settings(max_examples=100)
@given(st.lists(st.lists(likely_rows, max_size=8), max_size=3))
def test_rows_of_any_form(frames: list[list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        looked_at(trail_of(Path(folder) / "t.trail", *frames))


@settings(max_examples=80)
@given(st.binary(max_size=60))
def test_frames_of_any_bytes(payload: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = trail_of(Path(folder) / "t.trail", payload)
        looked_at(path)
        path.write_bytes(path.read_bytes() + sealed(payload))
        looked_at(path)
        (Path(folder) / "u.trail").write_bytes(MAGIC + payload)
        looked_at(Path(folder) / "u.trail")


@pytest.mark.parametrize(
    "payload",
    [
        b"\xdd\xff\xff\xff\xff" * 50,
        b"\xdc\x3f\xff" * 1000,
        b"\x91" * 100_000,
        b"\x81\xa1a" * 100_000,
        b"\xdf\xff\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\x91\x92\xcf" + b"\xff" * 8 + b"\xa1\xff",
        b"\xc1",
        b"",
        b"\x90" * 2 * LONGEST_FRAME,
    ],
    ids=lambda payload: repr(payload[:6]),
)
def test_frames_that_claim_too_much(tmp_path: Path, payload: bytes) -> None:
    """In a process that may not use much memory."""
    path = trail_of(tmp_path / "t.trail", payload, [(CREATE, 1, 0, 0, 1)])
    code = (
        "import resource, sys; from tensortrail.tracer.reading.timeline import open_run\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1_000_000_000, 1_000_000_000))\n"
        "run = open_run(sys.argv[1]); print(len(run.events()), run.trouble)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 ")


def test_lengths_that_lie(tmp_path: Path) -> None:
    path = tmp_path / "t.trail"
    for length in (LONGEST_FRAME, LONGEST_FRAME + 1, 2**32 - 1):
        path.write_bytes(MAGIC + frame([HEADER]) + FRAME.pack(length, 0) + b"x")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        timeline = looked_at(path)
        assert timeline is not None
        assert "cut off or damaged" in timeline.trouble[0]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it ends before its first event"),
        (MAGIC[:4], "it ends before its first event"),
        (b"TENT", "not a trail"),
        (b"PK\x03\x04", "not a trail"),
        (b"\x00" * 1000, "not a trail"),
        (MAGIC[:-1], "a trail of another version"),
    ],
)
def test_other_files(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "t.trail"
    path.write_bytes(content)
    with pytest.raises(NotATrail, match=rf"t\.trail: {why}"):
        open_run(path)


def test_a_newer_version_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.trail"
    path.write_bytes(b"TENSORTRAIL 3\n")
    with pytest.raises(NotATrail, match="another version"):
        open_run(path)


def test_things_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"pipe{SUFFIX}")
    (tmp_path / f"folder{SUFFIX}").mkdir()
    (tmp_path / f"link{SUFFIX}").symlink_to(tmp_path / "nowhere")
    whole(tmp_path / "well.trail")
    timeline = looked_at(tmp_path)
    assert timeline is not None
    assert len(timeline.events()) == len(Did) + 1
    assert len(timeline.trouble) == 3


@pytest.mark.parametrize("file", ["/dev/zero", "/dev/stdin", "/proc/self/mem", "\0", "a" * 5000])
def test_source_files_that_are_none(tmp_path: Path, file: str) -> None:
    rows = [
        (0, 1, file),
        (1, 1, 1, 1, 1, 1, 1, 1),
        (CREATE, 1, 0, 1, 1),
        {"version": 1, "start": 9e9},
    ]
    timeline = looked_at(trail_of(tmp_path / "t.trail", rows))
    assert timeline is not None
    [event] = timeline.events()
    assert event.site is not None
    assert timeline.line(event.site) == ""


def test_a_storage_that_descends_from_itself(tmp_path: Path) -> None:
    move = CODE[Did.MOVE]
    rows = [(move, 1, 0, 0, 1, 2), (move, 2, 0, 0, 2, 1), (move, 3, 0, 0, 3, 3)]
    timeline = looked_at(trail_of(tmp_path / "t.trail", rows))
    assert timeline is not None
    assert len(timeline.events()) == 3


def test_a_process_that_forked_itself(tmp_path: Path) -> None:
    header = {"version": 1, "pid": 7, "parent": 7, "first_storage": 100, "run": "r"}
    timeline = looked_at(trail_of(tmp_path / "t.trail", [header, (CREATE, 1, 0, 0, 1)]))
    assert timeline is not None
    assert len(timeline.events()) == 1
