"""A run of many ranks, made from a real recording: what `report` and `fleet` of it take.

    python benchmarks/ranks.py [--ranks 1024] [--events 20000] [--folder DIR] [--keep]

A training step of a small model is recorded on simulated GPUs; its events are repeated up to the
length asked for, and each rank gets them with its own number, clock and device. One rank leaves a
weight on the CPU and comes last to the others, one has no end. CPU seconds,
wall seconds, peak memory of the largest process and of all together."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgpack

from tensortrail.rules.timeline import Did
from tensortrail.tracer.trail.layout import CODE, FRAME, MAGIC, NAME, TEXT, Row
from tensortrail.tracer.trail.part import Part
from tensortrail.tracer.trail.reader import read_part

PROGRAM = """\
import torch
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
model.to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(300):
    batch = torch.randn(16, 32)
    loss = model(batch.to("cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    log = loss.detach().to("cpu")
    if step % 50 == 49:
        state = {name: each.cpu() for name, each in model.state_dict().items()}
"""
MOVE, COLLECTIVE = CODE[Did.MOVE], CODE[Did.COLLECTIVE]
EVENTS_A_COLLECTIVE, WAIT = 50, 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--events", type=int, default=5000, help="of each rank")
    parser.add_argument("--folder", type=Path, help="where the run goes, or lies already")
    parser.add_argument("--keep", action="store_true", help="leave the run there")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp())
    if not list(folder.glob("*.trail")):
        began = time.perf_counter()
        many(recorded(folder), folder, options.ranks, options.events)
        size = sum(each.stat().st_size for each in folder.glob("*.trail"))
        print(f"{options.ranks} ranks x {options.events} events made in "
              f"{time.perf_counter() - began:.0f} s, {size / 1e6:.0f} MB")  # fmt: skip
    formats = [[], ["--format", "html"], ["--format", "parquet"]]
    for command in (*(["report", str(folder), *each] for each in formats), ["fleet", str(folder)]):
        measured(command)
    if not options.keep:
        shutil.rmtree(folder)


def recorded(folder: Path) -> Part:
    """One process on a simulated GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(PROGRAM)
    trace = [sys.executable, "-m", "tensortrail", "trace", "--rehearse", "cuda:1"]
    subprocess.run([*trace, "--directory", "one", "train.py"], cwd=folder, check=True,
                   capture_output=True)  # fmt: skip
    (trail,) = (folder / "one").glob("*.trail")
    part = read_part(str(trail))
    shutil.rmtree(folder / "one")
    return part


def many(part: Part, folder: Path, ranks: int, events: int) -> None:
    rows = repeated(part, events)
    usual, odd = (body(part, rows, strays) for strays in (False, True))
    for rank in range(ranks):
        path = folder / f"rank-{rank:05d}.trail"
        write(part, path, rank, odd if rank == ranks // 3 else usual, ends=rank != ranks // 2)


def repeated(part: Part, events: int) -> list[Row]:
    """The same events again and again, later each time and with new storages; now and then a
    collective in between, which a process alone does not have."""
    all_reduce = max(part.texts) + 1
    part.texts[all_reduce] = "all_reduce"
    length = part.rows[-1][1] + 1
    most = max(part.storages, default=0)
    found: list[Row] = []
    turn = 0
    while len(found) < events:
        for row in part.rows:
            code, at, context, site, storage, other, op, facts = row[:8]
            shifted = (each + turn * most if each else 0 for each in (storage, other))
            found.append((code, at + turn * length, context, site, *shifted, op, facts))
            if len(found) % EVENTS_A_COLLECTIVE == 0 and site:
                number = len(found) // EVENTS_A_COLLECTIVE
                told = {"number": number, "took": WAIT}
                found.append(
                    (COLLECTIVE, at + turn * length, context, site, 0, 0, all_reduce, told)
                )
        turn += 1
    return found[:events]


def body(part: Part, rows: list[Row], strays: bool) -> bytes:
    """The frames that ranks share; with a weight that stays where it was and no time spent in
    waiting for others, if asked for."""
    most = max(part.storages, default=0)
    on_cpu = next(number for number, text in part.texts.items() if text == "cpu")
    moved = (row[4] for row in part.rows if row[0] == MOVE and row[4] in part.names)
    stray = next(moved) if strays else 0
    told: list[Row] = [*part.sites.values(), *part.contexts.values()]
    known: set[int] = set()
    for row in rows:
        for number in (row[4], row[5]):
            original = (number - 1) % most + 1
            if not number or number in known or original not in part.storages:
                continue
            known.add(number)
            code, _, device, *described = part.storages[original]
            told.append((code, number, on_cpu if original == stray else device, *described))
            told += [(NAME, number, name) for name in part.names.get(original, ())]
        hastes = strays and row[0] == COLLECTIVE
        told.append((*row[:7], {**row[7], "took": WAIT // 20}) if hastes else row)
    chunks = (told[start : start + 4096] for start in range(0, len(told), 4096))
    return b"".join(map(frame, chunks))


def write(part: Part, path: Path, rank: int, shared: bytes, ends: bool) -> None:
    header = {**part.header, "rank": rank, "local_rank": rank % 8, "pid": 1000 + rank,
              "host": f"node-{rank // 8}"}  # fmt: skip
    own = {"cuda:0": f"cuda:{rank % 8}"}
    texts = [(TEXT, number, own.get(text, text)) for number, text in part.texts.items() if number]
    end = {"end": header["start"], "dropped": {}}
    path.write_bytes(MAGIC + frame([header]) + frame(texts) + shared + frame([end]) * ends)


def frame(rows: Sequence[Any]) -> bytes:
    payload = zlib.compress(msgpack.packb(rows), 1)
    return FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def measured(command: list[str]) -> None:
    began, cpu = time.perf_counter(), os.times()
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen([sys.executable, "-m", "tensortrail", *command], **both)
    peak = Peak(process.pid)
    watching = threading.Thread(target=peak.watch)
    watching.start()
    said, _ = process.communicate()
    peak.over = True
    watching.join()
    took = os.times()
    seconds = took.children_user + took.children_system - cpu.children_user - cpu.children_system
    print(f"{' '.join(command[:1] + command[2:])}: {time.perf_counter() - began:.1f} s, "
          f"{seconds:.1f} CPU s, {peak.together / 1e6:.0f} MB together, "
          f"{peak.largest / 1e6:.0f} MB the largest process")  # fmt: skip
    print("    " + "\n    ".join(said.splitlines()[:24]))


class Peak:
    """The most memory of a process and its children, looked at ten times a second."""

    def __init__(self, pid: int) -> None:
        self.pid, self.over, self.together, self.largest = pid, False, 0, 0

    def watch(self) -> None:
        while not self.over:
            sizes = [resident(each) for each in (self.pid, *children(self.pid))]
            self.together = max(self.together, sum(sizes))
            self.largest = max(self.largest, *sizes)
            time.sleep(0.1)


def children(pid: int) -> list[int]:
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    main()
