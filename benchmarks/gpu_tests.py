"""GPU tests of other projects on simulated GPUs: a table by project, and every failure.

    python -m benchmarks.gpu_tests [--devices cuda:2] [PROJECT...]

Each project's tests run twice, plainly and with `pytest --rehearse`, on a machine without a GPU.
The tests are those named in `tests/real/suites.py`; set TENSORTRAIL_SUITES to a folder with
repositories.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch

from tests.real.suites import SUITES, NotHere, Outcome, run, tests_of, version_of

Outcomes = Mapping[str, Outcome]
LACKS = "rehearsal: "
HEAD = (
    "| project | tests of | tests | skipped by a CPU | of those passed | skipped, lacking | "
    "skipped otherwise | failed | passed by a CPU, not rehearsed | seconds |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def timed(folder: Path, files: tuple[str, ...], *options: str) -> tuple[Outcomes, float]:
    before = time.perf_counter()
    found = run(folder, files, *options)
    return found, time.perf_counter() - before


def row(project: str, state: str, plain: Outcomes, rehearsed: Outcomes, seconds: str) -> str:
    # Some files of tests cannot even be read without a GPU.
    skipped = [name for name in rehearsed if name not in plain or plain[name].word == "skipped"]
    count = Counter(kind(rehearsed.get(name)) for name in skipped)
    lost = sum(is_lost(outcome, rehearsed.get(name)) for name, outcome in plain.items())
    cells = [
        f"{project} {version_of(SUITES[project])}", state, len(rehearsed), len(skipped),
        count["passed"], count["lacking"], count["skipped"], count["failed"], lost, seconds,
    ]  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def kind(outcome: Outcome | None) -> str:
    if outcome is None:
        return "missing"
    if outcome.word == "skipped" and outcome.message.startswith(LACKS):
        return "lacking"
    return "failed" if outcome.word == "error" else outcome.word


def is_lost(plain: Outcome, rehearsed: Outcome | None) -> bool:
    return plain.word == "passed" and kind(rehearsed) not in ("passed", "lacking", "skipped")


def details(plain: Outcomes, rehearsed: Outcomes) -> None:
    """What failed rehearsed and not plainly, and why tests were skipped."""
    for name, outcome in rehearsed.items():
        before = plain.get(name)
        if kind(outcome) == "failed" and (before is None or kind(before) != "failed"):
            first = outcome.message.splitlines() or [""]
            print(f"  failed   {name}\n           {first[0][:160]}")
    reasons = Counter(each.message for name, each in rehearsed.items() if each.word == "skipped")
    for reason, count in reasons.most_common(12):
        print(f"  skipped  {count:>4} x {reason[:140]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", metavar="PROJECT")
    parser.add_argument("--devices", default="cuda:2")
    options = parser.parse_args()
    chosen = [name for name, suite in SUITES.items() if suite.for_gpus]
    print(f"torch {torch.__version__}, {options.devices}\n\n{HEAD}", flush=True)
    for project in options.projects or chosen:
        suite = SUITES[project]
        try:
            folder, state = tests_of(suite)
        except NotHere as reason:
            print(f"{project}: {reason}")
            continue
        plain, alone = timed(folder, suite.for_gpus)
        rehearsed, taken = timed(folder, suite.for_gpus, "--rehearse", options.devices)
        print(row(project, state, plain, rehearsed, f"{alone:.0f} -> {taken:.0f}"))
        details(plain, rehearsed)


if __name__ == "__main__":
    main()
