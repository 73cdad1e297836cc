"""CPU time and memory of a check against the size of the file, for shapes that are hard on it.

    python -m benchmarks.growth [SHAPE...] [--sizes N,N,...] [--no-large]

Each file is checked by a process of its own, with every rule of the default selection and without
a cache. The exponent is the slope of log(CPU time) over log(N), the time of an empty check taken
off; it has to be at most 1.2. A dash stands where Python itself takes no file nested so deeply.
A file of 5 MB of each shape has to take at most 10 CPU seconds and 500 MB. The last column says
which of them were judged only in part, by the finding that says so.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.shapes import HEAD, SHAPES, of_size

STEEPEST = 1.2
LARGE = 5_000_000
MOST_SECONDS, MOST_MEGABYTES = 10.0, 500.0
_NOISE = 0.05
"""Seconds: what is below them says nothing about growth."""
_LIMIT = 60
"""CPU seconds after which a check is stopped."""
_FAILURES = (b"TTR001", b"TTR003")
_REFUSED = b"nested too deeply to be parsed"


@dataclass
class Run:
    seconds: float
    megabytes: float
    partly: bool = False
    crashed: bool = False
    """It ended with an error, was stopped, or a rule failed: its time says nothing."""
    refused: bool = False
    """Python itself takes no such file: there is no tree of it."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="SHAPE")
    parser.add_argument("--sizes", default="500,1000,2000,4000,8000")
    parser.add_argument("--no-large", action="store_true", help="leave out the files of 5 MB")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "shape.py")
        empty = min((checked(file, HEAD) for _ in range(3)), key=lambda run: run.seconds)
        print(f"an empty check: {empty.seconds:.2f} s, {empty.megabytes:.0f} MB")
        print(f"{'shape':22}" + "".join(f"{size:>8}" for size in sizes) + "  exponent    5 MB")
        bad = sum(not row(name, file, sizes, empty, options.no_large) for name in options.shapes)
    print(f"{bad} of {len(options.shapes)} shapes grow faster, or take more, than they may")
    return 1 if bad else 0


def row(name: str, file: Path, sizes: Sequence[int], empty: Run, no_large: bool) -> bool:
    shape = SHAPES[name]
    runs = [checked(file, shape(size)) for size in sizes]
    net = [0.0 if run.refused else run.seconds - empty.seconds for run in runs]
    slope = exponent(sizes, net)
    shown = (
        f"{'-' if run.refused else f'{each:.2f}':>8}" for run, each in zip(runs, net, strict=True)
    )
    print(f"{name:22}" + "".join(shown), end="")
    print(f"  {slope:8.2f}" if slope is not None else f"  {'noise':>8}", end="", flush=True)
    fine = (slope is None or slope <= STEEPEST) and not any(run.crashed for run in runs)
    if not no_large:
        large = checked(file, of_size(shape, LARGE))
        fine &= large.seconds <= MOST_SECONDS and large.megabytes <= MOST_MEGABYTES
        fine &= not large.crashed
        runs.append(large)
        print(f"  {large.seconds:6.1f} s {large.megabytes:5.0f} MB", end="")
        print("  in part" if large.partly else "", end="")
    print("  FAILED" if any(run.crashed for run in runs) else "", end="")
    print("" if fine else "  <-- too much")
    return fine


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float | None:
    """The slope of a straight line through the logarithms; None where nothing can be measured."""
    points = [
        (math.log(size), math.log(each))
        for size, each in zip(sizes, seconds, strict=True)
        if each > _NOISE
    ]
    if len(points) < 2:
        return None
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    across = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return across / sum((x - middle_x) ** 2 for x, _ in points)


def checked(file: Path, source: str) -> Run:
    """One check of a file with this source, in a process of its own."""
    file.write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "tensortrail", "check", str(file), "--no-cache", "--isolated"]
    command += ["--exit-zero", "--jobs", "1", "--output-format", "concise"]
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, preexec_fn=_limited
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        said = out.read()
    refused = _REFUSED in said
    failed = any(code in said for code in _FAILURES) and not refused
    seconds = usage.ru_utime + usage.ru_stime
    return Run(
        seconds,
        usage.ru_maxrss / 1024,
        b"TTR004" in said,
        failed or process.returncode != 0,
        refused,
    )


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (_LIMIT, _LIMIT))


if __name__ == "__main__":
    sys.exit(main())
