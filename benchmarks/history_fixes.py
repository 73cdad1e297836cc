"""Fixes of other projects that came with a test, read from the projects' histories."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

TEST = re.compile(r"(^|/)tests?/.*test_\w+\.py$")
NO_SOURCE = re.compile(
    r"(^|/)(tests?|examples|scripts|benchmarks|docs)/|testing|test_utils|setup\.py"
)
OF_DEVICES = re.compile(r"\.to\(|device|cuda|offload|\bmeta\b|pin_memory|stream")
A_FIX = re.compile(
    r"\b(fix|bug|wrong|correct|mismatch|device|offload|cuda|gpu|broken|error|fail|regress)", re.I
)
HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ")
MOST_LINES = 300
MOST_FILES = 12


@dataclass(frozen=True)
class Fix:
    project: str
    commit: str
    date: int
    subject: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]


class Repository:
    def __init__(self, path: Path) -> None:
        self._path = path

    def git(self, *command: str, check: bool = True) -> bytes:
        done = subprocess.run(
            ["git", "-C", str(self._path), *command], capture_output=True, check=check
        )
        return done.stdout

    def text(self, commit: str, path: str) -> str:
        return self.git("show", f"{commit}:{path}", check=False).decode(errors="replace")

    def fixes(self, project: str, since: str) -> Iterator[Fix]:
        """Newest first: those of code that has to do with devices."""
        told = self.git(
            "log", "--no-merges", f"--since={since}", "--format=%x01%H %ct %s", "--numstat"
        )
        for chunk in told.decode(errors="replace").split("\x01")[1:]:
            head, *rest = chunk.splitlines()
            commit, date, subject = head.split(" ", 2)
            fix = _fix(project, commit, int(date), subject, rest)
            if fix is not None and OF_DEVICES.search(self._changed(fix)):
                yield fix

    def fix(self, project: str, commit: str) -> Fix:
        """Of one commit, whatever it changes."""
        told = self.git("show", "--format=%H %ct %s", "--name-only", commit).decode()
        head, *files = told.splitlines()
        whole, date, subject = head.split(" ", 2)
        python = [path for path in files if path.endswith(".py")]
        tests = tuple(path for path in python if TEST.search(path))
        sources = tuple(path for path in python if not NO_SOURCE.search(path))
        return Fix(project, whole, int(date), subject, sources, tests)

    def _changed(self, fix: Fix) -> str:
        diff = self.git("show", "--format=", "-U0", fix.commit, "--", *fix.sources)
        lines = diff.decode(errors="replace").splitlines()
        return "\n".join(line for line in lines if re.match(r"[+-](?![+-]{2} )", line))

    def old_lines(self, fix: Fix) -> dict[str, list[range]]:
        """The lines of the code before the fix that its diff shows, with three around each."""
        found: dict[str, list[range]] = {}
        for path in fix.sources:
            diff = self.git("show", "--format=", "-U3", fix.commit, "--", path)
            for hunk in map(HUNK.match, diff.decode(errors="replace").splitlines()):
                if hunk:
                    first, count = int(hunk[1]), int(hunk[2] or 1)
                    found.setdefault(path, []).append(range(first, first + count))
        return found

    def changed_tests(self, fix: Fix) -> list[str]:
        """Names of the test functions that are new or changed."""
        names = []
        for path in fix.tests:
            before = functions(self.text(f"{fix.commit}^", path))
            after = functions(self.text(fix.commit, path))
            names += [name for name, text in after.items() if before.get(name) != text]
        return sorted({name.rpartition("::")[2] for name in names})

    def unpack(self, commit: str, folders: Sequence[str], target: Path) -> None:
        for folder in folders:
            (target / folder).mkdir(parents=True, exist_ok=True)
            tar = self.git("archive", f"{commit}:{folder}", check=False)
            subprocess.run(["tar", "x", "-C", str(target / folder)], input=tar, check=False)


def _fix(project: str, commit: str, date: int, subject: str, numbers: Sequence[str]) -> Fix | None:
    files = [line.split("\t") for line in numbers if line.count("\t") == 2]
    tests = tuple(path for *_, path in files if TEST.search(path))
    sources = [each for each in files if each[2].endswith(".py") and not NO_SOURCE.search(each[2])]
    lines = sum(int(count) for each in sources for count in each[:2] if count.isdigit())
    few = 0 < len(sources) <= MOST_FILES and lines <= MOST_LINES
    if not (tests and few and A_FIX.search(subject)):
        return None
    return Fix(project, commit, date, subject, tuple(path for *_, path in sources), tests)


def functions(text: str) -> dict[str, str]:
    """Of the tests: name with class -> text."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for outer in tree.body:
        for each in outer.body if isinstance(outer, ast.ClassDef) else [outer]:
            if isinstance(each, ast.FunctionDef) and each.name.startswith("test"):
                found[f"{getattr(outer, 'name', '')}::{each.name}"] = ast.unparse(each)
    return found
