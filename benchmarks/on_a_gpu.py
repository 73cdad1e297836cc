"""Programs on a GPU that is there and on a simulated one: the same end, and the same findings?

    python -m benchmarks.on_a_gpu [FOLDER...] [--jobs N] [--output FILE]

Each program runs three times: plainly, traced, and traced in a rehearsal of as many GPUs as the
machine has. Printed is each program whose exit code or error differs between the three, whose
findings differ between the last two, or that prints something else when it is traced. Without a
FOLDER: the programs of the tests. One that rehearses itself is left out."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from tests.real.programs.cases import CASES
from tests.real.programs.test_healthy import TWO_RANKS

HERE = Path(__file__).parents[1]
PROGRAMS = HERE / "tests" / "real" / "programs"
LIMIT = 120
ARGUMENTS = {case.name: case.arguments for case in CASES}
KINDS = ("plain", "traced", "rehearsed")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = [PROGRAMS / "failing", PROGRAMS / "healthy"]
    parser.add_argument("folders", nargs="*", type=Path, default=default)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--output", type=Path, help="what came out, as JSON")
    options = parser.parse_args(argv)
    devices = torch.cuda.device_count()
    if not devices:
        print("no GPU here: nothing to compare with", file=sys.stderr)
        return 2
    found = sorted(path for folder in options.folders for path in folder.glob("*.py"))
    programs = [path for path in found if "rehearse=" not in path.read_text(encoding="utf-8")]
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(compared, path, f"cuda:{devices}") for path in programs]
        for done in as_completed(running):
            rows.append(done.result())
            show(rows[-1])
            if options.output:
                options.output.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    differ = [sum(not same(row) for row in rows) for same in (same_end, same_codes, same_output)]
    print(
        "{} programs: {} end otherwise, {} with other findings, {} print something else".format(
            len(rows), *differ
        )
    )
    return 0


def compared(program: Path, devices: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        runs = [ended(program, Path(folder) / kind, kind, devices) for kind in KINDS]
    return {"program": program.name, **dict(zip(KINDS, runs, strict=True))}


def ended(program: Path, folder: Path, kind: str, devices: str) -> dict[str, Any]:
    """How a run of a program ended: exit code, last line of its error, findings with their lines,
    and what it printed."""
    folder.mkdir()
    done = output_of(command_of(program.resolve(), kind, devices), folder)
    tests = program.stem.startswith("test_")
    return {
        "exit": done.returncode,
        "error": error_in(done.stdout if tests else done.stderr),
        "codes": codes_of(folder) if kind != "plain" else [],
        "output": "" if tests else alike(done.stdout),
    }


def command_of(program: Path, kind: str, devices: str) -> list[str]:
    rehearsed = ["--rehearse", devices] if kind == "rehearsed" else []
    if program.stem.startswith("test_"):
        recorded = ["--tensortrail", "--tensortrail-directory", "run", *rehearsed]
        options = recorded if kind != "plain" else []
        return [*("-m", "pytest", "-q", "-p", "no:cacheprovider"), *options, str(program)]
    trace = ["-m", "tensortrail", "trace", "--directory", "run", *rehearsed]
    launcher = ["-m", *TWO_RANKS] if program.stem == "two_ranks" else []
    started = [*(trace if kind != "plain" else []), str(program), *ARGUMENTS.get(program.stem, ())]
    return [*launcher, *started]


def output_of(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    here = {"PYTHONPATH": os.pathsep.join((str(HERE), *sys.path[1:]))}
    try:
        return subprocess.run(
            [sys.executable, *command], cwd=folder, env=os.environ | here, capture_output=True,
            text=True, timeout=LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", "TimeoutExpired: too slow")


def error_in(text: str) -> str:
    """The last line that names an exception, without what differs from run to run."""
    found = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Expired|Interrupt)\b.*$", text, re.M)
    return alike(found[-1]) if found else ""


def alike(text: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)? [KMG]iB|/tmp/\w+", "N", text)


def codes_of(folder: Path) -> list[str]:
    text = output_of(["-m", "tensortrail", "report", "run", "--format", "json"], folder).stdout
    found = json.loads(text or "[]")
    return sorted({f"{each['code']}:{each['location']['line']}" for each in found})


def show(row: dict[str, Any]) -> None:
    """Only of a program that differs."""
    if same_end(row) and same_codes(row) and same_output(row):
        return
    print(row["program"])
    for kind in KINDS:
        run = row[kind]
        codes = " ".join(run["codes"])
        print(f"    {kind:9} {run['exit']:3} {codes:24} {run['error'][:160]}", flush=True)
    if not same_output(row):
        for kind in KINDS[:2]:
            print(f"    {kind:9} printed {row[kind]['output'][-200:]!r}", flush=True)


def same_end(row: dict[str, Any]) -> bool:
    return len({(row[kind]["exit"], row[kind]["error"]) for kind in KINDS}) == 1


def same_codes(row: dict[str, Any]) -> bool:
    return bool(row["traced"]["codes"] == row["rehearsed"]["codes"])


def same_output(row: dict[str, Any]) -> bool:
    return bool(row["plain"]["output"] == row["traced"]["output"])


if __name__ == "__main__":
    sys.exit(main())
