"""Programs on a GPU that is there and on a simulated one: the same end, and the same findings?

    python -m benchmarks.on_a_gpu [FOLDER...] [--jobs N] [--output FILE]

Each program runs three times: plainly, traced, and traced in a rehearsal of as many GPUs as the
machine has. Printed is each program whose exit code or error differs between the three, or whose
findings differ between the last two. Without a FOLDER: the failing programs of the tests."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

FAILING = Path(__file__).parents[1] / "tests" / "real" / "programs" / "failing"
LIMIT = 120
KINDS = ("plain", "traced", "rehearsed")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[FAILING])
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--output", type=Path, help="what came out, as JSON")
    options = parser.parse_args(argv)
    devices = torch.cuda.device_count()
    if not devices:
        print("no GPU here: nothing to compare with", file=sys.stderr)
        return 2
    programs = sorted(path for folder in options.folders for path in folder.glob("*.py"))
    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda path: compared(path, f"cuda:{devices}"), programs):
            rows.append(row)
            show(row)
            if options.output:
                options.output.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    ends, codes = (sum(not same(row) for row in rows) for same in (same_end, same_codes))
    print(f"{len(rows)} programs: {ends} end otherwise, {codes} with other findings")
    return 0


def compared(program: Path, devices: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        runs = [ended(program, Path(folder) / kind, kind, devices) for kind in KINDS]
    return {"program": program.name, **dict(zip(KINDS, runs, strict=True))}


def ended(program: Path, folder: Path, kind: str, devices: str) -> dict[str, Any]:
    """How a run of a program ended: exit code, last line of its error, codes of its findings."""
    folder.mkdir()
    command = [sys.executable]
    if kind != "plain":
        command += ["-m", "tensortrail", "trace", "--directory", "run"]
    if kind == "rehearsed":
        command += ["--rehearse", devices]
    told = output_of([*command, str(program.resolve())], folder)
    codes = codes_of(folder) if kind != "plain" else []
    return {"exit": told.returncode, "error": error_in(told.stderr), "codes": codes}


def output_of(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    here = {"PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[1]), *sys.path[1:]))}
    try:
        return subprocess.run(
            command, cwd=folder, env=os.environ | here, capture_output=True, text=True,
            timeout=LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", "TimeoutExpired: too slow")


def error_in(text: str) -> str:
    """The last line that names an exception, without what differs from run to run."""
    found = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Expired|Interrupt)\b.*$", text, re.M)
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)? [KMG]iB", "N", found[-1]) if found else ""


def codes_of(folder: Path) -> list[str]:
    command = [sys.executable, "-m", "tensortrail", "report", "run", "--format", "json"]
    text = output_of(command, folder).stdout
    return sorted(set(re.findall(r'"code": ?"([A-Z]{3}\d{3})"', text)))


def show(row: dict[str, Any]) -> None:
    """Only of a program that differs."""
    if same_end(row) and same_codes(row):
        return
    print(row["program"])
    for kind in KINDS:
        run = row[kind]
        codes = " ".join(run["codes"])
        print(f"    {kind:9} {run['exit']:3} {codes:24} {run['error'][:160]}", flush=True)


def same_end(row: dict[str, Any]) -> bool:
    return len({(row[kind]["exit"], row[kind]["error"]) for kind in KINDS}) == 1


def same_codes(row: dict[str, Any]) -> bool:
    return bool(row["traced"]["codes"] == row["rehearsed"]["codes"])


if __name__ == "__main__":
    sys.exit(main())
