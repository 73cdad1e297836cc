"""Fresh mistakes: one thing about devices taken out of right code; which of them the lint finds.

python benchmarks/fresh_mistakes.py TREE... [--each 40] [--seed 0] [--list KIND]

A mistake counts as found if the changed file has a finding that the file did not have. Many
mistakes change nothing (an index, a number, code that only runs on the CPU): they are not taken
out here, so no share can reach 100 %.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensortrail.analyzer.judge import judge
from tensortrail.analyzer.module import open_project
from tensortrail.analyzer.source import Source, Unreadable
from tensortrail.rules import Rule, all_rules
from tensortrail.rules.devices._lying import FACTORIES

LEFT_OUT = {"tests", "test", "testing", "examples", "scripts", "benchmarks", "docs"}
CODES = ("DEV52", "NEW305", "OFF107")


@dataclass(frozen=True)
class Mistake:
    kind: str
    path: Path
    line: int
    data: bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--each", type=int, default=40, help="mistakes of each kind and tree")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", metavar="KIND", help="print those that were missed")
    options = parser.parse_args()
    rules = [rule() for code, rule in all_rules().items() if code.startswith(CODES)]
    found: Counter[str] = Counter()
    made: Counter[str] = Counter()
    for tree in options.trees:
        lint = Lint(rules)
        for mistake in sample(tree, options.each, options.seed):
            made[mistake.kind] += 1
            if lint.finds(mistake):
                found[mistake.kind] += 1
            elif mistake.kind == options.list:
                print(f"{mistake.path}:{mistake.line}")
        print(f"after {tree.name}: {found.total()} of {made.total()}", file=sys.stderr, flush=True)
    for kind, count in sorted(made.items()):
        print(f"{kind:24} {found[kind]:4} of {count:4}  {100 * found[kind] / count:5.1f} %")


class Lint:
    """Judges the files of one tree, before and after a change."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._project = open_project()
        self._before: dict[Path, Counter[str]] = {}

    def finds(self, mistake: Mistake) -> bool:
        path = mistake.path
        if path not in self._before:
            self._before[path] = self._said(path, path.read_bytes())
        return bool(self._said(path, mistake.data) - self._before[path])

    def _said(self, path: Path, data: bytes) -> Counter[str]:
        self._project.forget(str(path))
        try:
            findings = judge(str(path), data, self._rules, self._project).findings
        except Unreadable:
            return Counter()
        return Counter(each.code for each in findings)


def sample(tree: Path, each: int, seed: int) -> Iterator[Mistake]:
    """The same ones for the same tree and seed; at most two of a kind in a file."""
    chance = random.Random(seed)
    files = sorted(path for path in tree.rglob("*.py") if not LEFT_OUT & set(path.parts))
    chance.shuffle(files)
    left: Counter[str] = Counter()
    for path in files:
        data = path.read_bytes()
        if b"torch" not in data or b"device" not in data:
            continue
        by_kind: dict[str, list[Mistake]] = {}
        for mistake in mistakes(path, data):
            by_kind.setdefault(mistake.kind, []).append(mistake)
        for kind, possible in sorted(by_kind.items()):
            for mistake in chance.sample(possible, min(2, len(possible), each - left[kind])):
                left[kind] += 1
                yield mistake
        if left and all(left[kind] >= each for kind in KINDS):
            return


KINDS = ("device= of a factory", "device= of another call", ".to(device)", "register_buffer")


def mistakes(path: Path, data: bytes) -> Iterator[Mistake]:
    try:
        tree, source = ast.parse(data), Source(str(path), data)
    except (SyntaxError, ValueError, LookupError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from (
                Mistake(kind, path, node.lineno, changed)
                for kind, start, end, text in edits(source, node)
                if (changed := replaced(data, start, end, text)) is not None
            )


def edits(source: Source, call: ast.Call) -> Iterator[tuple[str, int, int, bytes]]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    start, end = source.span(call)
    for at, keyword in enumerate(call.keywords):
        if keyword.arg != "device" or isinstance(keyword.value, ast.Constant):
            continue
        before = call.keywords[at - 1].value if at else (call.args[-1] if call.args else None)
        if before is None:
            continue
        kind = KINDS[0] if name in FACTORIES else KINDS[1]
        yield kind, source.span(before)[1], source.span(keyword.value)[1], b""
    if name == "to" and isinstance(call.func, ast.Attribute) and moves_only(call):
        yield KINDS[2], source.span(call.func.value)[1], end, b""
    if name == "register_buffer" and len(call.args) >= 2 and isinstance(call.args[0], ast.Constant):
        value = source.text(*source.span(call.args[1]))
        if value != "None":
            yield KINDS[3], start, end, f"self.{call.args[0].value} = ({value})".encode()


def moves_only(call: ast.Call) -> bool:
    return len(call.args) == 1 and not call.keywords and "device" in ast.unparse(call.args[0])


def replaced(data: bytes, start: int, end: int, text: bytes) -> bytes | None:
    changed = data[:start] + text + data[end:]
    try:
        ast.parse(changed)
    except (SyntaxError, ValueError):
        return None
    return changed


if __name__ == "__main__":
    main()
