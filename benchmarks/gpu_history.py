"""Fixes of other projects as the judge: tests, rehearsed before the fix and after it, and plainly.

    python -m benchmarks.gpu_history --mirrors FOLDER --work FOLDER [--since DATE] [PROJECT...]
    python -m benchmarks.gpu_history --mirrors FOLDER --work FOLDER --ours [--again] [PROJECT...]
    python -m benchmarks.gpu_history --write

The tests are those that a fix changed, or with `--ours` those in `device_bugs/`, which we wrote
for fixes without one. The other packages are those of the time (`eras.py`). A fix is told apart if
a test fails before and passes after it, and a plain run does not fail before it, or fails twice.
Each fix adds a line to `gpu_history.jsonl`, and those that are there are left out; `--write` puts
the tables into the guide.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import forked_tests
from benchmarks.eras import packages
from benchmarks.forked_tests import Outcomes
from benchmarks.gpu_history_table import RESULTS, recorded, summary, write_guide
from benchmarks.history_fixes import Fix, Repository

OURS = Path(__file__).parent / "device_bugs"
LINE = re.compile(r"([\w./+-]+\.py):(\d+)")
FOLDERS = re.compile(r"/\S*/(?=[\w.-]+\.\w+)")
"""Of this machine."""
DEVICES = ("--rehearse", "cuda:2")


@dataclass(frozen=True)
class Layout:
    """Where a project has its package and its tests."""

    mirror: str
    folders: tuple[str, ...]
    """The last has its tests."""
    source: str = "."
    package: str = ""
    without: tuple[str, ...] = ()
    """Packages that its old releases cannot be imported with, as they are today."""


LAYOUTS = {
    "accelerate": Layout("huggingface+accelerate", ("src", "tests"), "src", without=("torchao",)),
    "diffusers": Layout("huggingface+diffusers", ("src", "tests"), "src", without=("torchao",)),
    "peft": Layout("huggingface+peft", ("src", "tests"), "src", without=("torchao",)),
    "torchao": Layout("pytorch+ao", ("torchao", "test")),
    "bitsandbytes": Layout(
        "bitsandbytes-foundation+bitsandbytes", ("bitsandbytes", "tests"), without=("transformers",)
    ),
    "sd-scripts": Layout(
        "kohya-ss+sd-scripts", ("library", "networks", "tests"), package="library"
    ),
    "torchmetrics": Layout("Lightning-AI+torchmetrics", ("src", "torchmetrics", "tests"), "src"),
    "torchtune": Layout("pytorch+torchtune", ("torchtune", "tests")),
    "speechbrain": Layout("speechbrain+speechbrain", ("speechbrain", "tests")),
    "monai": Layout("Project-MONAI+MONAI", ("monai", "tests")),
    "torchrec": Layout("pytorch+torchrec", ("torchrec", "docs")),
    "timm": Layout("huggingface+pytorch-image-models", ("timm", "tests")),
    "pytorch-lightning": Layout(
        "Lightning-AI+pytorch-lightning",
        ("src", "pytorch_lightning", "tests"),
        "src",
        "pytorch_lightning",
    ),
    "compressed-tensors": Layout(
        "vllm-project+compressed-tensors", ("src", "tests"), "src", "compressed_tensors"
    ),
    "optimum-quanto": Layout(
        "huggingface+optimum-quanto", ("quanto", "optimum", "test"), package="quanto"
    ),
}


@dataclass(frozen=True)
class Verdict:
    """Of one fix."""

    told_apart: bool
    why: str
    """The error before the fix, or why the fix is not told apart."""
    tests: tuple[str, ...] = ()
    """Which fail before and pass after it."""
    plain: str = ""
    """What a plain run says of the first of them before the fix. If it fails, after it, too."""
    names_the_line: bool = False
    """The explanation names a line that the fix changed, or one of the three around it."""
    explained: bool = False


@dataclass(frozen=True)
class Trial:
    """A fix and the tests to try it with."""

    fix: Fix
    files: Sequence[str]
    names: Sequence[str] = ()
    """Functions in them, if not all are wanted."""
    ours: bool = False


@dataclass
class Judge:
    layout: Layout
    repository: Repository
    trial: Trial
    work: Path
    bound: float
    others: Sequence[Path] = field(default_factory=tuple)

    def verdict(self) -> Verdict:
        fix, folders = self.trial.fix, self.layout.folders
        if not self.trial.files:
            return Verdict(False, "no test function was changed")
        self.repository.unpack(fix.commit, folders, self.work / "after")
        self.repository.unpack(f"{fix.commit}^", folders[:-1], self.work / "before")
        self.repository.unpack(fix.commit, folders[-1:], self.work / "before")
        before = self._run("before", rehearsed=True)
        failed = _named(before, "failed")
        if not failed:
            return Verdict(False, _first(before.trouble) or _nothing_failed(before))
        after = self._run("after", rehearsed=True)
        told = [name for name in failed if _word(after, name) == "passed"]
        if not told:
            messages = (after.tests[name].message for name in failed if name in after.tests)
            reason = f"fails at the fix, too: {_first(next(messages, ''))}"
            return Verdict(False, _first(after.trouble) or reason)
        return self._against_plain(before, told)

    def explanation(self) -> tuple[bool, bool]:
        """Whether the failures before the fix are explained, and whether a line of it is named."""
        fix, folders = self.trial.fix, self.layout.folders
        self.repository.unpack(f"{fix.commit}^", folders[:-1], self.work / "before")
        self.repository.unpack(fix.commit, folders[-1:], self.work / "before")
        before = self._run("before", rehearsed=True)
        told = [before.tests[name].explanation for name in _named(before, "failed")]
        return any(told), any(map(self._names_a_line, told))

    def _against_plain(self, before: Outcomes, told: Sequence[str]) -> Verdict:
        plain = self._run("before", rehearsed=False)
        words = {name: _word(plain, name) for name in told}
        if "failed" in words.values():
            after = self._run("after", rehearsed=False)
            words = {name: word for name, word in words.items() if word == _word(after, name)}
        hidden = list(words)
        if not hidden:
            message = _first(before.tests[told[0]].message)
            return Verdict(False, f"a plain run tells, too: {message}")
        explanations = [before.tests[name].explanation for name in hidden]
        return Verdict(
            True,
            _first(before.tests[hidden[0]].message),
            tuple(Path(name).name for name in hidden[:5]),
            words[hidden[0]],
            any(map(self._names_a_line, explanations)),
            any(explanations),
        )

    def _names_a_line(self, explanation: str) -> bool:
        old = self.repository.old_lines(self.trial.fix)
        for file, line in LINE.findall(explanation):
            for path, ranges in old.items():
                same = path.endswith(file.removeprefix("../")) or file.endswith(path)
                if same and any(int(line) in lines for lines in ranges):
                    return True
        return False

    def _run(self, state: str, rehearsed: bool) -> Outcomes:
        folder = self.work / state
        chosen = ["-k", " or ".join(self.trial.names[:40])] if self.trial.names else []
        files = [each for each in self.trial.files if (folder / each.partition("::")[0]).is_file()]
        arguments = [*(DEVICES if rehearsed else ()), *chosen, *files]
        package = self.layout.package or self.trial.fix.project
        source = folder / self.layout.source
        paths = [source if (source / package).is_dir() else folder, *self.others]
        found = forked_tests.run(paths, package, folder, arguments, self.bound, self.layout.without)
        for name, each in found.tests.items():
            if each.explanation:
                said = self.work.parent / f"{self.work.name}-{state}-{Path(name).name[-60:]}.txt"
                said.write_text(f"{each.message}\n\n{each.explanation}\n", encoding="utf-8")
        return found


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
    return FOLDERS.sub("", (message.splitlines() or [""])[0])[:200]


def ours_of(project: str) -> Iterator[tuple[str, str]]:
    """Commits, and the tests that we wrote for them."""
    for file in sorted(OURS.glob(f"test_{project.replace('-', '_')}*.py")):
        for function in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(function, ast.FunctionDef):
                for mark in function.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fix":
                        yield ast.literal_eval(mark.args[0]), f"{file}::{function.name}"


def trials(project: str, repository: Repository, ours: bool, since: str) -> Iterator[Trial]:
    if ours:
        tests: dict[str, list[str]] = {}
        for commit, test in ours_of(project):
            tests.setdefault(commit, []).append(test)
        for commit, files in tests.items():
            yield Trial(repository.fix(project, commit), files, ours=True)
        return
    for fix in repository.fixes(project, since):
        names = repository.changed_tests(fix)
        yield Trial(fix, fix.tests if names else (), names)


def record(trial: Trial, verdict: Verdict) -> None:
    fix = trial.fix
    row = {
        "project": fix.project,
        "fix": fix.commit[:12],
        "date": _day(fix),
        "subject": fix.subject,
        "test": "ours" if trial.ours else "theirs",
        **asdict(verdict),
    }
    others = [each for each in recorded() if not _same(each, row)]
    text = "".join(json.dumps(each) + "\n" for each in [*others, row])
    RESULTS.write_text(text, encoding="utf-8")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one[key] == other[key] for key in ("project", "fix", "test"))


def _day(fix: Fix) -> str:
    return datetime.date.fromtimestamp(fix.date).isoformat()


def judge(project: str, options: argparse.Namespace) -> None:
    layout = LAYOUTS[project]
    repository = Repository(options.mirrors / layout.mirror / "repo")
    test = "ours" if options.ours else "theirs"
    known = {row["fix"] for row in recorded() if row["test"] == test and not options.again}
    for trial in trials(project, repository, options.ours, options.since):
        commit = trial.fix.commit
        wanted = not options.only or commit.startswith(tuple(options.only.split(",")))
        if not wanted or commit[:12] in known:
            continue
        work = options.work / commit[:12]
        others = packages(_day(trial.fix), options.work / "eras")
        judged = Judge(layout, repository, trial, work, options.seconds, others)
        if not options.explain:
            record(trial, found := judged.verdict())
            print(project, commit[:9], trial.fix.subject[:60], found, flush=True)
        elif commit[:12] in told_apart(test):
            record_explanation(trial, *judged.explanation())
        shutil.rmtree(work, ignore_errors=True)


def told_apart(test: str) -> set[str]:
    return {row["fix"] for row in recorded() if row["test"] == test and row["told_apart"]}


def record_explanation(trial: Trial, explained: bool, names_the_line: bool) -> None:
    """Of a fix that has a verdict."""
    test, fix = "ours" if trial.ours else "theirs", trial.fix.commit[:12]
    rows = recorded()
    for row in rows:
        if (row["fix"], row["test"]) == (fix, test):
            row |= {"explained": explained, "names_the_line": names_the_line}
            print(row["project"], fix, explained, names_the_line, flush=True)
    RESULTS.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("projects", nargs="*", metavar="PROJECT")
    parser.add_argument("--mirrors", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--since", default="2025-01-01")
    parser.add_argument("--only", help="commits, with commas between")
    parser.add_argument("--seconds", type=float, default=240, help="for one run")
    parser.add_argument("--ours", action="store_true", help="the tests in device_bugs/")
    parser.add_argument("--again", action="store_true", help="also those with a verdict")
    parser.add_argument("--explain", action="store_true", help="with --again: run what was told "
                        "apart only before the fix, and see what is explained")  # fmt: skip
    parser.add_argument("--write", action="store_true", help="write the tables, run nothing")
    options = parser.parse_args()
    if not options.write:
        forked_tests.preload()
        for project in options.projects or LAYOUTS:
            judge(project, options)
        print(summary())
    write_guide()


if __name__ == "__main__":
    main()
