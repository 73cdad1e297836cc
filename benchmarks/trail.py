"""The trail at length: written, read and summarised; memory of a long recording; bytes an event.

    python benchmarks/trail.py [--events N]

The memory is that of a process which records as many events of real operations (10 M by default:
some minutes), over what the same operations take without; the storages alive stay the same."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.trail.writer import TrailWriter

MILLION = 1_000_000
LONG_RUN = """
import resource, sys, torch, tensortrail
from contextlib import nullcontext
folder, events, record = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "record"
alive = [torch.zeros(4) for _ in range(int(sys.argv[4]))]
resident = lambda: int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
with tensortrail.trace(directory=folder, max_size="4GB") if record else nullcontext():
    for tensor in alive:
        tensor.to("cpu")
        if record: tensor.data_ptr(), tensor.untyped_storage()
    x = torch.ones(4)
    for step in range(events // 4):
        x.to("meta"), torch.zeros(4)  # move, free; create, free
    print(resident())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10 * MILLION, help="of the long recording")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        written_and_read(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        long_recording(Path(folder), options.events)
    live_storages(100_000)


def written_and_read(folder: Path) -> None:
    path = folder / "run.trail"
    began = time.process_time()
    write(path)
    wrote = time.process_time()
    timeline = open_run(path)
    summary = Summary(timeline)
    told = (summary.counts, summary.moves_by_line, summary.alive_by_device, summary.phases)
    curves = summary.bytes_over_time()
    read = time.process_time()
    assert len(told) == 4
    assert len(curves) == 2
    each = path.stat().st_size / MILLION
    print(f"1 M events written in {wrote - began:.2f} CPU s, {each:.1f} bytes each")
    print(f"1 M events read and summarised in {read - wrote:.2f} CPU s")


def write(path: Path) -> None:
    """A tensor is made, moved, and both storages go; half a storage an event."""
    writer = TrailWriter(str(path), {"version": "0", "run": "r", "pid": 1}, 1 << 31)
    context, op = writer.context("MainThread", "train"), writer.text("Tensor.to")
    site = writer.site("train.py", 1, "main", ("", 0, ""))
    for _ in range(MILLION // 4):
        made = writer.storage("cpu", 400, "float32", (10, 10), "")
        writer.event(CODE[Did.CREATE], context, site, made, 0, op)
        moved = writer.storage("cuda:0", 400, "float32", (10, 10), "")
        writer.event(CODE[Did.MOVE], context, site, moved, made, op)
        writer.event(CODE[Did.FREE], 0, 0, made)
        writer.event(CODE[Did.FREE], 0, 0, moved)
    writer.close()


def long_recording(folder: Path, events: int) -> None:
    without, recording = (resident(folder, events, how, 0) for how in ("pass", "record"))
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(
        f"{events / MILLION:g} M events recorded: {(recording - without) / 1e6:.0f} MB of memory, "
        f"{size / events:.1f} bytes an event on disk"
    )


def live_storages(count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = [resident(Path(folder), 0, how, 0) for how in ("pass", "record")]
        more = [resident(Path(folder), 0, how, count) for how in ("pass", "record")]
    extra = (more[1] - more[0]) - (base[1] - base[0])
    print(f"{count:,} storages alive: {extra / count:.0f} bytes of memory each")


def resident(folder: Path, events: int, how: str, alive: int) -> int:
    command = [sys.executable, "-c", LONG_RUN, str(folder), str(events), how, str(alive)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
