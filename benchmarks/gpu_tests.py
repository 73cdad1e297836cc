"""GPU tests of other projects on simulated GPUs: a table by project, and every failure.

    TENSORTRAIL_SUITES=FOLDER python -m benchmarks.gpu_tests [--devices cuda:2] [PROJECT...]
    TENSORTRAIL_SUITES=FOLDER python -m benchmarks.gpu_tests --again PROJECT...
    python -m benchmarks.gpu_tests --write

Each project's tests run twice, plainly and with `pytest --rehearse`, on a machine without a GPU.
FOLDER has a git repository for each project. What came out is kept in `gpu_tests.json`; `--write`
puts it into the guide, each failure with its reading from `gpu_tests_read.jsonl`. `--again` runs
only the tests that failed, after something was mended.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from benchmarks.gpu_suites import GPU_SUITES
from benchmarks.gpu_tests_table import RESULTS, results, row, write_guide
from tests.real.suites import NotHere, Outcome, Suite, Tests, run, tests_of

Outcomes = Mapping[str, Outcome]
LACKS = "rehearsal: "
LONGEST = 300


def measured(suite: Suite, tests: Tests, devices: str) -> dict[str, Any]:
    before = time.perf_counter()
    plain = plainly(suite, tests)
    between = time.perf_counter()
    rehearsed = run(suite, tests, "--rehearse", devices)
    seconds = [round(between - before), round(time.perf_counter() - between)]
    about = {"state": tests.state, "torch": torch.__version__, "devices": devices}
    return {**about, "seconds": seconds, **compared(plain, rehearsed)}


def plainly(suite: Suite, tests: Tests) -> Outcomes:
    """None at all, if the tests cannot even be read without a GPU."""
    try:
        return run(suite, tests)
    except RuntimeError as error:
        print(f"{suite.project}: without a GPU {error}")
        return {}


def compared(plain: Outcomes, rehearsed: Outcomes) -> dict[str, Any]:
    # Some files of tests cannot even be read without a GPU.
    gained = [name for name in rehearsed if name not in plain or kind(plain[name]) == "skipped"]
    count = Counter(kind(rehearsed[name]) for name in gained)
    alike = [name for name in plain if kind(plain[name]) == "failed"]
    return {
        "tests": len(rehearsed),
        "failed_on_a_cpu": len(alike),
        "skipped_by_a_cpu": len(gained),
        **{word: count[word] for word in ("passed", "lacking", "skipped", "failed")},
        "reasons": reasons(rehearsed),
        "failures": [
            [name, "skipped" if name in gained else "passed", first_line(outcome)]
            for name, outcome in rehearsed.items()
            if kind(outcome) == "failed" and name not in alike
        ],
        "lost": [name for name in plain if name not in rehearsed],
    }


def reasons(rehearsed: Outcomes) -> dict[str, int]:
    """Why tests were skipped that a rehearsal lacks something for."""
    lacking = [each.message for each in rehearsed.values() if kind(each) == "lacking"]
    return dict(Counter(each.removeprefix(LACKS)[:LONGEST] for each in lacking).most_common())


def kind(outcome: Outcome) -> str:
    if outcome.word == "skipped" and outcome.message.startswith(LACKS):
        return "lacking"
    return "failed" if outcome.word == "error" else outcome.word


def first_line(outcome: Outcome) -> str:
    return (outcome.message.splitlines() or [""])[0][:LONGEST]


def measure(project: str, devices: str) -> None:
    try:
        found = measured(GPU_SUITES[project], tests_of(GPU_SUITES[project]), devices)
    except NotHere as reason:
        print(f"{project}: {reason}")
        return
    if found["failed_on_a_cpu"] == found["tests"]:
        print(f"{project}: its tests cannot be read here")
        return
    keep(project, found)


def again(project: str, devices: str) -> None:
    suite, found = GPU_SUITES[project], results()[project]
    failures = found["failures"]
    chosen = replace(
        suite, files=tuple(node_of(name, suite.files) for name, *_ in failures), options=()
    )
    rehearsed = run(chosen, tests_of(suite), "--rehearse", devices)
    found["failures"] = []
    for name, before, _ in failures:
        outcome = rehearsed.get(name, Outcome("failed", "it did not run"))
        now = kind(outcome)
        if now == "failed":
            found["failures"].append([name, before, first_line(outcome)])
        elif before == "skipped":
            found["failed"] -= 1
            found[now] += 1
    found["reasons"] = dict((Counter(found["reasons"]) + Counter(reasons(rehearsed))).most_common())
    keep(project, found)


def node_of(name: str, files: Sequence[str]) -> str:
    """As pytest takes it: reports have a file, the class with its module, and the test.

    The file is that of the function, which a class of another file may have from a base."""
    _, kind, test = name.split("::", 2)
    for file in files:
        module = file.removesuffix(".py").replace("/", ".")
        if kind == module or kind.startswith(f"{module}."):
            inside = kind.removeprefix(module).strip(".").split(".")
            return "::".join([file, *filter(None, inside), test])
    return name


def keep(project: str, found: dict[str, Any]) -> None:
    text = json.dumps({**results(), project: found}, indent=1, sort_keys=True)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    print(row(project, found), flush=True)
    for name, before, message in found["failures"]:
        print(f"  failed, {before} on a CPU: {name}\n      {message}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", metavar="PROJECT")
    parser.add_argument("--devices", default="cuda:2")
    parser.add_argument("--again", action="store_true", help="only the tests that failed")
    parser.add_argument("--write", action="store_true", help="only write the table")
    options = parser.parse_args()
    if not options.write:
        for project in options.projects or GPU_SUITES:
            (again if options.again else measure)(project, options.devices)
    write_guide()


if __name__ == "__main__":
    main()
