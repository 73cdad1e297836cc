"""Fixes of other projects as the judge: their tests, rehearsed before the fix and after it.

    python -m benchmarks.gpu_history --mirrors FOLDER --work FOLDER [--since DATE] [PROJECT...]

The tests that a fix changed run rehearsed with the code before it and with the code after it, and
plainly. A fix is told apart if one of them fails before and passes after, where the plain run shows
no such difference. Each fix adds a line to `gpu_history.jsonl`; those that are there are left out.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import forked_tests
from benchmarks.forked_tests import Outcomes
from benchmarks.history_fixes import Fix, Repository

RESULTS = Path(__file__).parent / "gpu_history.jsonl"
LINE = re.compile(r"([\w./+-]+\.py):(\d+)")


@dataclass(frozen=True)
class Layout:
    """Where a project has its package and its tests."""

    mirror: str
    folders: tuple[str, ...]
    source: str
    without: tuple[str, ...] = ()
    """Packages that its old releases cannot be imported with, as they are today."""


LAYOUTS = {
    "accelerate": Layout("huggingface+accelerate", ("src", "tests"), "src"),
    "diffusers": Layout("huggingface+diffusers", ("src", "tests"), "src", ("torchao",)),
    "peft": Layout("huggingface+peft", ("src", "tests"), "src"),
    "torchao": Layout("pytorch+ao", ("torchao", "test"), "."),
}


@dataclass(frozen=True)
class Verdict:
    """Of one fix."""

    told_apart: bool
    why: str
    """The error before the fix, or why the fix is not told apart."""
    tests: tuple[str, ...] = ()
    """Which fail before and pass after it."""
    names_the_line: bool = False
    """The explanation names a line that the fix changed, or one of the three around it."""
    explained: bool = False


class Judge:
    def __init__(self, layout: Layout, repository: Repository, fix: Fix, work: Path, bound: float):
        self._layout, self._repository, self._fix, self._bound = layout, repository, fix, bound
        self._after, self._before = work / "after", work / "before"
        repository.unpack(fix.commit, layout.folders, self._after)
        repository.unpack(f"{fix.commit}^", layout.folders[:1], self._before)
        repository.unpack(fix.commit, layout.folders[1:], self._before)
        self._names = repository.changed_tests(fix)

    def verdict(self) -> Verdict:
        if not self._names:
            return Verdict(False, "no test function was changed")
        before = self._run(self._before, rehearsed=True)
        failed = _named(before, "failed")
        if not failed:
            return Verdict(False, before.trouble or _nothing_failed(before))
        after = self._run(self._after, rehearsed=True)
        told = [name for name in failed if _word(after, name) == "passed"]
        if not told:
            message = next(
                (after.tests[name].message for name in failed if name in after.tests), ""
            )
            return Verdict(False, after.trouble or f"fails at the fix, too: {_first(message)}")
        return self._against_plain(before, told)

    def _against_plain(self, before: Outcomes, told: Sequence[str]) -> Verdict:
        plain = self._run(self._before, rehearsed=False)
        hidden = [name for name in told if _word(plain, name) != "failed"]
        if not hidden:
            after = self._run(self._after, rehearsed=False)
            hidden = [name for name in told if _word(after, name) != "passed"]
        if not hidden:
            return Verdict(
                False, f"a plain run tells, too: {_first(before.tests[told[0]].message)}"
            )
        explanations = [before.tests[name].explanation for name in hidden]
        return Verdict(
            True,
            _first(before.tests[hidden[0]].message),
            tuple(hidden[:5]),
            any(map(self._names_a_line, explanations)),
            any(explanations),
        )

    def _names_a_line(self, explanation: str) -> bool:
        old = self._repository.old_lines(self._fix)
        for file, line in LINE.findall(explanation):
            for path, ranges in old.items():
                same = path.endswith(file.removeprefix("../")) or file.endswith(path)
                if same and any(int(line) in lines for lines in ranges):
                    return True
        return False

    def _run(self, state: Path, rehearsed: bool) -> Outcomes:
        names = " or ".join(self._names[:40])
        files = [path for path in self._fix.tests if (self._after / path).is_file()]
        options = ["--rehearse", "cuda:2"] if rehearsed else []
        package = state / self._layout.source
        arguments = [*options, "-k", names, *files]
        return forked_tests.run(
            package, self._fix.project, state, arguments, self._bound, self._layout.without
        )


def _word(outcomes: Outcomes, name: str) -> str:
    return outcomes.tests[name].word if name in outcomes.tests else "missing"


def _named(outcomes: Outcomes, word: str) -> list[str]:
    return [name for name, each in outcomes.tests.items() if each.word == word]


def _nothing_failed(outcomes: Outcomes) -> str:
    skipped = _named(outcomes, "skipped")
    if skipped and len(skipped) == len(outcomes.tests):
        return f"skipped: {_first(outcomes.tests[skipped[0]].message)}"
    return "its tests pass before the fix" if outcomes.tests else "no test ran"


def _first(message: str) -> str:
    return (message.splitlines() or [""])[0][:200]


def record(fix: Fix, verdict: Verdict) -> None:
    about = {
        "project": fix.project,
        "fix": fix.commit[:12],
        "date": datetime.date.fromtimestamp(fix.date).isoformat(),
        "subject": fix.subject,
    }
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**about, **asdict(verdict)}) + "\n")


def recorded() -> list[dict[str, Any]]:
    if not RESULTS.is_file():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def summary() -> str:
    rows = recorded()
    lines = ["| project | fixes with a test | told apart | of those explained | line named |",
             "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for project in sorted({row["project"] for row in rows}):
        of_it = [row for row in rows if row["project"] == project]
        told = [row for row in of_it if row["told_apart"]]
        explained = sum(row["explained"] for row in told)
        named = sum(row["names_the_line"] for row in told)
        lines.append(f"| {project} | {len(of_it)} | {len(told)} | {explained} | {named} |")
    reasons = Counter(kind(row["why"]) for row in rows if not row["told_apart"])
    return "\n".join([*lines, "", *(f"{count} x {why}" for why, count in reasons.most_common())])


def kind(why: str) -> str:
    return why.partition(":")[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", metavar="PROJECT")
    parser.add_argument("--mirrors", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--since", default="2025-01-01")
    parser.add_argument("--only", help="commits, with commas between")
    parser.add_argument("--seconds", type=float, default=240, help="for one run")
    options = parser.parse_args()
    forked_tests.preload()
    known = {row["fix"] for row in recorded()}
    for project in options.projects or LAYOUTS:
        layout = LAYOUTS[project]
        repository = Repository(options.mirrors / layout.mirror / "repo")
        for fix in repository.fixes(project, options.since):
            wanted = not options.only or fix.commit.startswith(tuple(options.only.split(",")))
            if not wanted or fix.commit[:12] in known:
                continue
            work = options.work / fix.commit[:12]
            found = Judge(layout, repository, fix, work, options.seconds).verdict()
            record(fix, found)
            print(fix.project, fix.commit[:9], found, flush=True)
            shutil.rmtree(work, ignore_errors=True)
    print(summary())


if __name__ == "__main__":
    main()
