"""What a rehearsal costs: seconds of the processor for the same tests, plainly and rehearsed.

    TENSORTRAIL_SUITES=FOLDER python -m benchmarks.gpu_tests_cost [PROJECT...]

The tests are those that pass on a CPU. The seconds are those of the whole command. What a rehearsal
adds where the tests are only collected is its start."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from typing import NamedTuple

from benchmarks.gpu_suites import GPU_SUITES
from benchmarks.gpu_tests import kind, node_of
from benchmarks.gpu_tests_table import COST
from tests.real.suites import Suite, Tests, run, tests_of

CHOSEN = {
    "accelerate": replace(GPU_SUITES["accelerate"], files=("tests/test_hooks.py",)),
    "safetensors": GPU_SUITES["safetensors"],
    "diffusers": replace(
        GPU_SUITES["diffusers"],
        files=("tests/schedulers/test_scheduler_ddim.py",
               "tests/schedulers/test_scheduler_unipc.py"),
        options=(),
    ),
}  # fmt: skip
REHEARSED = ("--rehearse", "cuda:2")


class Cost(NamedTuple):
    tests: int
    plain: float
    rehearsed: float
    start: float

    @property
    def ratio(self) -> float:
        return self.rehearsed / self.plain


def cost(suite: Suite, tests: Tests) -> Cost:
    passed = [name for name, each in run(suite, tests).items() if kind(each) == "passed"]
    chosen = replace(suite, files=tuple(node_of(each, suite.files) for each in passed), options=())
    reading = seconds(chosen, tests, "--collect-only")
    reading_rehearsed = seconds(chosen, tests, *REHEARSED, "--collect-only")
    return Cost(
        len(passed),
        seconds(chosen, tests),
        seconds(chosen, tests, *REHEARSED),
        reading_rehearsed - reading,
    )


def seconds(suite: Suite, tests: Tests, *options: str) -> float:
    """Of the processor, also in threads and in processes that the tests start."""
    before = os.times()
    run(suite, tests, *options)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", default=list(CHOSEN), metavar="PROJECT")
    for project in parser.parse_args().projects:
        suite = CHOSEN[project]
        found = cost(suite, tests_of(suite))
        rows = json.loads(COST.read_text(encoding="utf-8")) if COST.is_file() else {}
        rows[project] = {**found._asdict(), "ratio": found.ratio}
        COST.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(project, found, f"{found.ratio:.2f}x", flush=True)


if __name__ == "__main__":
    main()
