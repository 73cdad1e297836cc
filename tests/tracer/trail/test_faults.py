"""Disks that are full, programs that are killed, files that are gone: the program goes on, and
what was written is read."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording import session
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.trail.reader import read_part
from tensortrail.tracer.trail.writer import TrailWriter
from tests import warm

from .samples import HEADER, looked_at, written

pytestmark = pytest.mark.long

CREATE = CODE[Did.CREATE]


BEFORE = """\
import os, signal, sys, time, torch
from tensortrail.tracer.recording.begin import begin
running = begin(sys.argv[1])
"""


def program(folder: Path, source: str, *more: str) -> subprocess.Popen[str]:
    """It runs beside the test."""
    return subprocess.Popen(
        [sys.executable, "-c", BEFORE + source, str(folder / "run"), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ran(folder: Path, source: str) -> str:
    """What it printed, when it has ended well."""
    (folder / "program.py").write_text(BEFORE + source)
    done = warm.run(["program.py", str(folder / "run")], folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_killed_in_the_middle(tmp_path: Path) -> None:
    source = """
for step in range(10**9):
    torch.zeros(step % 7 + 1).to("meta")
    if step == 20_000: print("now", flush=True)
"""
    with program(tmp_path, source) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "now\n"
        running.kill()
    assert running.returncode == -signal.SIGKILL
    timeline = open_run(tmp_path / "run")
    moves = timeline.events(Did.MOVE)
    assert len(moves) > 15_000
    assert all(e.storage and e.other and e.storage.shape == e.other.shape for e in moves[::100])
    assert not timeline.parts[0].closed
    assert all("cut off" in each for each in timeline.trouble)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    writer = TrailWriter(str(tmp_path / "t.trail"), HEADER, 1 << 30)
    real, calls = os.write, 0

    def write(file: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls > after:
            real(file, bytes(data)[:5])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(file, data)

    monkeypatch.setattr(os, "write", write)
    for number in range(1, 7):
        writer.event(CREATE, 0, 0, number)
        writer.flush()
    writer.close()
    monkeypatch.undo()
    assert "No space left" in writer.trouble
    timeline = looked_at(tmp_path / "t.trail")
    assert timeline is not None
    assert [event.storage.number for event in timeline.events() if event.storage] == list(
        range(1, after + 1)
    )
    assert not timeline.trouble


@pytest.mark.complete
def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    source = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
total = 0
for step in range(50_000):
    total += torch.zeros(2).to(torch.float64).numel()
print(total, running.recorder.writer.trouble)
running.stop()
"""
    with program(tmp_path, source) as running:
        output, errors = running.communicate()
    assert running.returncode == 0, errors
    assert output.startswith("100000 ")
    assert "File too large" in output
    timeline = looked_at(tmp_path / "run")
    assert timeline is not None
    assert len(timeline.events()) > 500
    assert not timeline.trouble


def test_a_full_file_system(tmp_path: Path) -> None:
    mounted = tmp_path / "run"
    mounted.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(mounted)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        source = "for _ in range(20_000): torch.zeros(2)\nprint(running.recorder.writer.trouble)"
        assert "No space left" in ran(tmp_path, source)
        timeline = looked_at(mounted)
        assert timeline is not None
        assert len(timeline.events()) > 500
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(OSError, match="taken"):
        begin(tmp_path / "taken")
    with pytest.raises(OSError, match="taken"):
        begin(tmp_path / "taken" / "below")
    assert (tmp_path / "taken").read_text() == "mine"
    assert session.running() is None


def test_a_directory_that_may_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(path: str, *_: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuses)
    with pytest.raises(PermissionError, match="Permission denied"):
        begin(tmp_path / "run")
    monkeypatch.undo()
    assert session.running() is None
    begin(tmp_path / "run").stop()


def test_a_forked_child_that_may_not_write_goes_on(tmp_path: Path) -> None:
    source = """
import errno
real = os.open
def refuses(path, flags, *more, **named):
    if str(path).endswith(".trail"): raise OSError(errno.ENOSPC, "No space left")
    return real(path, flags, *more, **named)
os.open = refuses
if (pid := os.fork()) == 0:
    print(torch.zeros(3).to(torch.float64).numel(), flush=True)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
torch.zeros(5)
running.stop()
"""
    assert ran(tmp_path, source).split() == ["3", "0"]
    [made] = open_run(tmp_path / "run").events(Did.CREATE)
    assert made.storage is not None
    assert made.storage.shape == (5,)


def test_two_runs_in_one_directory(tmp_path: Path) -> None:
    import torch

    for size in (3, 4):
        running = begin(tmp_path / "run")
        running.header["run"] = f"run {size}"
        torch.zeros(size)
        running.stop()
    timeline = open_run(tmp_path / "run")
    made = [e.storage.shape for e in timeline.events(Did.CREATE) if e.storage]
    assert len(list((tmp_path / "run").iterdir())) == 2
    assert made in ([(4,)], [(3,), (4,)])


@pytest.mark.complete
def test_two_programs_at_once_in_one_directory(tmp_path: Path) -> None:
    source = "for _ in range(2000): torch.zeros(int(sys.argv[2]))\nrunning.stop()"
    both = [program(tmp_path, source, size) for size in ("3", "4")]
    for each in both:
        assert each.wait(60) == 0
        each.communicate()
    timeline = open_run(tmp_path / "run")
    shapes = {e.storage.shape for e in timeline.events(Did.CREATE) if e.storage}
    assert len(shapes) == 1
    assert len(timeline.events(Did.CREATE)) == 2000
    assert any("earlier run" in each for each in timeline.trouble)


@pytest.mark.complete  # a program of its own
def test_a_program_that_closes_every_file(tmp_path: Path) -> None:
    """And opens its own: they must get nothing of the trail's."""
    source = """
torch.zeros(3)
os.closerange(3, 100)
own = [os.open(f"{sys.argv[1]}/own{n}", os.O_RDWR | os.O_CREAT) for n in range(20)]
torch.zeros(4)
running.stop()
for file in own:
    os.write(file, b"mine")
    os.close(file)
"""
    with program(tmp_path, source) as running:
        _, errors = running.communicate()
    assert running.returncode == 0, errors
    assert {(tmp_path / "run" / f"own{n}").read_bytes() for n in range(20)} == {b"mine"}
    timeline = open_run(tmp_path / "run")
    made = [e.storage.shape for e in timeline.events(Did.CREATE) if e.storage]
    assert made == [(3,), (4,)]
    assert timeline.parts[0].closed


def test_a_trail_that_was_deleted_or_replaced(tmp_path: Path) -> None:
    for replaced in (False, True):
        path = tmp_path / f"{replaced}.trail"
        writer = written(path)
        path.unlink()
        if replaced:
            path.write_text("mine")
            os.close(writer._file._file)
        writer.event(CREATE, 0, 0, 1)
        writer.close()
        assert path.exists() is replaced
        assert bool(writer.trouble) is replaced
    assert path.read_text() == "mine"


@pytest.mark.complete
def test_signal_handlers_that_raise_and_record(tmp_path: Path) -> None:
    source = """
class Alarm(TimeoutError): pass  # an OSError, as the writer meets some of its own
raised = caught = 0
inside = False
def handler(*_):
    global raised, inside
    torch.zeros(5)
    running.recorder.writer.flush()
    if inside:
        inside = False
        raised += 1
        raise Alarm
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
end = time.time() + 1
while time.time() < end:
    try:
        inside = True
        for _ in range(50):
            torch.zeros(3).to(torch.float64)
        inside = False
    except Alarm:
        caught += 1
signal.setitimer(signal.ITIMER_REAL, 0)
running.stop()
print(raised, caught, running.recorder.writer.fault)
"""
    with program(tmp_path, source) as running:
        output, errors = running.communicate()
    assert running.returncode == 0, errors
    raised, caught = map(int, output.split())
    assert raised == caught > 10
    assert not errors
    timeline = looked_at(tmp_path / "run")
    assert timeline is not None
    assert not timeline.trouble
    assert timeline.parts[0].closed
    assert {event.op for event in timeline.events(Did.CREATE)} == {"torch.zeros"}


@pytest.mark.complete  # a program of its own
def test_exit_from_a_handler_while_writing(tmp_path: Path) -> None:
    source = """
def handler(*_):
    os._exit(5)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
while True:
    torch.zeros(3)
    running.recorder.writer.flush()
"""
    with program(tmp_path, source) as running:
        assert running.wait(20) == 5
    timeline = open_run(tmp_path / "run")
    assert timeline.parts[0].closed
    assert not timeline.trouble


def test_writers_do_not_wait_for_each_other(tmp_path: Path) -> None:
    writer = written(tmp_path / "t.trail")
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with writer._lock:
            held.set()
            release.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    began = time.perf_counter()
    for _ in range(10_000):
        writer.event(CREATE, 0, 0, 1)
    writer.flush()
    assert time.perf_counter() - began < 5
    release.set()
    thread.join()
    writer.close()
    created = [row for row in read_part(str(tmp_path / "t.trail")).rows if row[0] == CREATE]
    assert len(created) == 10_001
