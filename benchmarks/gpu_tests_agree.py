"""GPU tests of other projects on a GPU that is there and on a simulated one: the same outcomes?

    TENSORTRAIL_SUITES=FOLDER python -m benchmarks.gpu_tests_agree [--jobs N] [PROJECT...]

Each project's tests of `gpu_suites.py` run twice, plainly and with `pytest --rehearse`, with as
many GPUs as the machine has, each file by itself. Each test that passes in one and fails in the
other is printed, and each file of which one run took too long."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu_suites import GPU_SUITES
from benchmarks.gpu_tests import first_line, kind
from tests.real.suites import NotHere, Outcome, Suite, Tests, run, tests_of

Outcomes = dict[str, Outcome]
NOT_RUN = Outcome("skipped", "it did not run")
ENDED = {"passed", "failed"}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("projects", nargs="*", metavar="PROJECT")
    parser.add_argument("--jobs", type=int, default=1, help="processes of each run")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds of each file's run")
    parser.add_argument("--output", type=Path, help="what came out, as JSON")
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        print("no GPU here: nothing to compare with", file=sys.stderr)
        return 2
    projects = options.projects or [*GPU_SUITES]
    rows = []
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(of_project, name, options.jobs, options.timeout) for name in projects]
        for run_of_one in as_completed(runs):
            rows.append(run_of_one.result())
            show(rows[-1])
            if options.output:
                options.output.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


def of_project(project: str, jobs: int, timeout: float) -> dict[str, Any]:
    try:
        suite = GPU_SUITES[project]
        tests = tests_of(suite)
    except (NotHere, RuntimeError, OSError) as reason:
        return {"project": project, "error": str(reason)}
    parallel = ("-n", str(jobs)) if jobs > 1 else ()
    files = [replace(suite, files=(file,), options=(*suite.options, *parallel))
             for file in suite.files]  # fmt: skip
    plainly: Outcomes = {}
    rehearsed: Outcomes = {}
    unfinished = []
    with ThreadPoolExecutor() as pool:
        for file, both in zip(
            files, pool.map(lambda each: ran(each, tests, timeout), files), strict=True
        ):
            if isinstance(both, str):
                unfinished.append(f"{file.files[0]}: {both}")
            else:
                plainly.update(both[0])
                rehearsed.update(both[1])
    return {"project": project, "unfinished": unfinished, **compared(plainly, rehearsed)}


def ran(suite: Suite, tests: Tests, timeout: float) -> tuple[Outcomes, Outcomes] | str:
    """How each test ended on the GPUs and in a rehearsal, or why that is not known."""
    devices = f"cuda:{torch.cuda.device_count()}"
    try:
        with ThreadPoolExecutor() as pool:
            plainly = pool.submit(run, suite, tests, timeout=timeout)
            rehearsed = pool.submit(run, suite, tests, "--rehearse", devices, timeout=timeout)
            return plainly.result(), rehearsed.result()
    except Exception as reason:  # a run that took too long says so in a line of the table
        return repr(reason)[:2000]


def compared(real: dict[str, Outcome], rehearsed: dict[str, Outcome]) -> dict[str, Any]:
    """How often each pair of outcomes was seen, and the tests that ended otherwise."""
    pairs = {
        name: (real.get(name, NOT_RUN), rehearsed.get(name, NOT_RUN))
        for name in {**real, **rehearsed}
    }
    words = {name: tuple(map(kind, pair)) for name, pair in pairs.items()}
    return {
        "tests": len(pairs),
        "counts": {" / ".join(both): n for both, n in Counter(words.values()).most_common()},
        "otherwise": [
            {"test": name, "words": both, "real": first_line(pairs[name][0]),
             "rehearsed": first_line(pairs[name][1])}
            for name, both in words.items()
            if both[0] != both[1]
        ],
    }  # fmt: skip


def show(row: dict[str, Any]) -> None:
    if "error" in row:
        print(f"{row['project']}: {row['error']}")
        return
    print(f"{row['project']}: {row['tests']} tests, on the GPU / rehearsed: {row['counts']}")
    for reason in row["unfinished"]:
        print(f"  not finished: {reason}")
    for each in row["otherwise"]:
        if set(each["words"]) <= ENDED:
            print(f"  {each['test']}: {' / '.join(each['words'])}")
            print(f"      {each['real'] or each['rehearsed']}")


if __name__ == "__main__":
    sys.exit(main())
