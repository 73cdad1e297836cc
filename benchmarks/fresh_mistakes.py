"""Fresh mistakes: one thing about devices taken out of right code; which of them the lint finds.

python benchmarks/fresh_mistakes.py TREE... [--each 40] [--seed 0] [--list KIND]
    [--rehearse N] [--kept FILE] [--beside FOLDER...]

A mistake counts as found if the changed file has a finding that the file did not have. Three shares
are printed: of all rules, of what is reported by default with its notes, and of errors and
warnings. What changes nothing by its form alone is not made: `zeros_like(x, device=x.device)` gives
the same without it. What is proven by the text around it to change nothing is made and left out of
the count (`fresh_equivalents.py` says what counts as a proof; `--all` counts it too). With
`--rehearse` as many mistakes as that, of every tree as many, are tried on a simulated GPU, beside
the right code (`rehearsed_mistakes.py` says how). This imports the trees; what they need beyond
this environment is in the folders. What changes nothing in these runs is left out as well, and of
what fails in them the shares are printed once more: there alone it is known that they are bugs.
Others change nothing either, such as code that only runs on the CPU, so no share can reach 100 %.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fresh_equivalents import Text, place_of, reason
from mistakes_tally import LOUD, NOT_RUN, NOTE, SELECTED, Reported, Tally

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.analyzer.reading.source import Source, Unreadable
from tensortrail.findings import Finding, Severity
from tensortrail.rules import Rule, all_rules
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES

LEFT_OUT = set("tests test testing test_utils stubs examples scripts benchmarks docs".split())
WITH_CONDITION_HELP = "with its condition, if a line stands alone under one"
CODES = ("DEV", "NEW3", "OFF1")


@dataclass(frozen=True)
class Mistake:
    kind: str
    path: Path
    line: int
    data: bytes
    at: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Where the changed call stands in the right code."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--each", type=int, default=40, help="mistakes of each kind and tree")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", metavar="KIND", help="print those that were missed")
    parser.add_argument("--whole", action="store_true", help=WITH_CONDITION_HELP)
    parser.add_argument("--all", action="store_true", help="count what changes nothing, too")
    parser.add_argument("--list-equivalent", action="store_true", help="print what is left out")
    parser.add_argument("--rehearse", type=int, default=0, help="how many are tried in runs")
    parser.add_argument("--only-rehearsed", action="store_true", help="count only what could run")
    parser.add_argument("--kept", type=Path, help="what the runs said, read and written")
    parser.add_argument("--beside", nargs="*", default=[], help="folders of more packages")
    options = parser.parse_args()
    global WITH_CONDITION
    WITH_CONDITION = options.whole
    sys.path[1:1] = options.beside
    rules = [rule() for code, rule in all_rules().items() if code.startswith(CODES)]
    tally, rehearsals, left = Tally(KINDS), Rehearsals(options.kept), options.rehearse
    for nth, tree in enumerate(options.trees):
        lint = Lint(rules)
        made = list(counted(tree, options, tally))
        share = left // (len(options.trees) - nth)
        order = random.Random(options.seed).sample(range(len(made)), len(made))
        tried = order[:share]  # of more, these are the first
        left -= len(tried)
        for at, mistake in enumerate(made):
            ran = rehearsals.of(tree, mistake) if at in tried else ""
            if options.only_rehearsed and (not ran or ran.startswith(NOT_RUN)):
                tally.left_aside(ran)
                continue
            new = lint.new(mistake)
            tally.add(mistake.kind, ran, new)
            if mistake.kind == options.list:
                codes = " ".join(sorted(code for code, _ in new)) or "missed"
                print(f"{mistake.path}:{mistake.line} {codes} {ran}".rstrip(), flush=True)
        print(f"after {tree.name}: {tally.so_far}", file=sys.stderr, flush=True)
    tally.show()


def counted(tree: Path, options: argparse.Namespace, tally: Tally) -> Iterator[Mistake]:
    """The mistakes of a tree that are not proven to change nothing."""
    for mistake in sample(tree, options.each, options.seed):
        why = "" if options.all else changes_nothing(mistake)
        if not why:
            yield mistake
            continue
        tally.proven[why] += 1
        if options.list_equivalent:
            print(f"{mistake.path}:{mistake.line} left out: {why}", flush=True)


class Rehearsals:
    """What runs say of mistakes, read from a file where they are kept, and written there."""

    def __init__(self, kept: Path | None) -> None:
        self._file = kept
        lines = kept.read_text(encoding="utf-8").splitlines() if kept and kept.exists() else []
        self._known: dict[str, str] = dict(json.loads(line) for line in lines)

    def of(self, tree: Path, mistake: Mistake) -> str:
        known = f"{mistake.path}:{mistake.line} {hashlib.sha256(mistake.data).hexdigest()[:16]}"
        if known not in self._known:
            from rehearsed_mistakes import verdict  # it imports torch

            found = verdict(tree, mistake.path, mistake.line, mistake.data)
            self._known[known] = f"{found.word}: {found.said}" if found.said else found.word
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(json.dumps((known, self._known[known])) + "\n")
        return self._known[known]


def changes_nothing(mistake: Mistake) -> str:
    """Why the mistake changes nothing, where the text proves it."""
    return reason(Text(mistake.path.read_bytes(), mistake.path), mistake.kind, mistake.at)


class Lint:
    """Judges the files of one tree, before and after a change."""

    def __init__(self, rules: list[Rule]) -> None:
        self._rules = rules
        self._project = open_project()
        self._before: dict[Path, Counter[Reported]] = {}
        self._by_code = {rule.code: rule for rule in rules}

    def new(self, mistake: Mistake) -> set[Reported]:
        path = mistake.path
        if path not in self._before:
            self._before[path] = self._reported(path, path.read_bytes())
        return set(self._reported(path, mistake.data) - self._before[path])

    def _reported(self, path: Path, data: bytes) -> Counter[Reported]:
        self._project.forget(str(path))
        try:
            findings = judge(str(path), data, self._rules, self._project).findings
        except Unreadable:
            return Counter()
        return Counter((each.code, self._how(each)) for each in findings)

    def _how(self, finding: Finding) -> str:
        rule = self._by_code[finding.code]
        if not rule.default or not (is_told(finding) or rule.notes):
            return SELECTED
        return NOTE if rule.reported(finding.severity) is Severity.NOTE else LOUD


def is_told(finding: Finding) -> bool:
    return finding.told or finding.severity is not Severity.NOTE


def sample(tree: Path, each: int, seed: int) -> Iterator[Mistake]:
    """The same ones for the same tree and seed; at most two of a kind in a file."""
    chance = random.Random(seed)
    found = (path for path in tree.rglob("*.py") if not LEFT_OUT & set(path.parts))
    files = sorted(path for path in found if path.is_file())  # a link may lead nowhere
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
            chance.shuffle(possible)
            parsing = (mistake for mistake in possible if parses(mistake.data))
            for mistake in islice(parsing, max(0, min(2, each - left[kind]))):
                left[kind] += 1
                yield mistake
        if left and all(left[kind] >= each for kind in KINDS):
            return


KINDS = (
    "device= of a factory",
    "device= of another call",
    ".to(device)",
    "register_buffer",
    "guard of a move",
    "forwarded keyword",
    "line of a to()",
)
FORWARDED = re.compile("device_map|map_location|dtype|offload|generator|_device")
GUARDS = re.compile(
    r"offload|meta_device|is_meta\b|'meta'|device_map|hook|low_?v?ram|low_?mem|save_mem|swap"
)
"""In conditions that change what a move does: one on a device that differs changes nothing."""
MOVERS = frozenset({"to", "cuda", "cpu", "_apply"})
FREES = frozenset({"empty_cache", "offload", "onload", "synchronize"})


def mistakes(path: Path, data: bytes) -> Iterator[Mistake]:
    try:
        tree, source = ast.parse(data), Source(str(path), data)
    except (SyntaxError, ValueError, LookupError):
        return
    for node, around in with_functions(tree, ()):
        at = place_of(node) if isinstance(node, ast.Call) else (0, 0, 0, 0)
        yield from (
            Mistake(kind, path, getattr(node, "lineno", 0), data[:start] + text + data[end:], at)
            for kind, start, end, text in edits(source, node, around)
        )


def with_functions(
    node: ast.AST, around: tuple[ast.AST, ...]
) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Every node, with the functions, classes and statements around it, outermost first."""
    for child in ast.iter_child_nodes(node):
        yield child, around
        scope = isinstance(child, (ast.stmt, ast.Call))
        yield from with_functions(child, (*around, child) if scope else around)


Around = tuple[ast.AST, ...]
Change = tuple[str, int, int, bytes]


def edits(source: Source, node: ast.AST, around: Around) -> Iterator[Change]:
    if isinstance(node, ast.Call):
        yield from of_keywords(source, node, around)
        yield from of_moves(source, node, around)
        yield from of_buffers(source, node)
    elif isinstance(node, ast.If):
        yield from of_guards(source, node)


def of_keywords(source: Source, call: ast.Call, around: Around) -> Iterator[Change]:
    for at, keyword in enumerate(call.keywords):
        before = call.keywords[at - 1].value if at else (call.args[-1] if call.args else None)
        if before is None or isinstance(keyword.value, ast.Constant) or keyword.arg is None:
            continue
        start, end = source.span(before)[1], source.span(keyword.value)[1]
        if keyword.arg == "device" and not follows_anyway(call, keyword.value):
            yield kind_of(call), start, end, b""
        elif FORWARDED.search(keyword.arg) and is_forwarded(keyword, around):
            yield KINDS[5], start, end, b""


def kind_of(call: ast.Call) -> str:
    if name_of(call) == "to":
        return KINDS[2]
    return KINDS[0] if name_of(call) in FACTORIES else KINDS[1]


def follows_anyway(call: ast.Call, device: ast.expr) -> bool:
    """`zeros_like(x, device=x.device)` and `x.new_zeros(n, device=x.device)`."""
    name, func = name_of(call), call.func
    if name.endswith("_like") and call.args:
        return ast.unparse(device) == f"{ast.unparse(call.args[0])}.device"
    if name.startswith("new_") and isinstance(func, ast.Attribute):
        return ast.unparse(device) == f"{ast.unparse(func.value)}.device"
    return False


def is_forwarded(keyword: ast.keyword, around: Around) -> bool:
    same = isinstance(keyword.value, ast.Name) and keyword.value.id == keyword.arg
    return same and keyword.arg in arguments_of(around)


def of_moves(source: Source, call: ast.Call, around: Around) -> Iterator[Change]:
    """`x = x.to(d)` is taken out as a whole, and so is a statement that only moves."""
    if name_of(call) != "to" or not isinstance(call.func, ast.Attribute) or not moves_only(call):
        return
    statement = around[-1] if around else None
    own = next((each.name for each in reversed(around) if isinstance(each, ast.FunctionDef)), "")
    bound = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if bound is not None and ast.unparse(bound) == ast.unparse(call.func.value):
        assert isinstance(statement, ast.Assign)
        if statement.value is call:
            kind = KINDS[6] if own in MOVERS else KINDS[2]
            yield kind, *without(source, statement, around)
            return
    if isinstance(statement, ast.Expr) and statement.value is call:
        yield KINDS[2], *without(source, statement, around)
        return
    yield KINDS[2], source.span(call.func.value)[1], source.span(call)[1], b""


WITH_CONDITION = False
"""What stands alone under a condition is taken out together with it, not replaced by `pass`."""


def without(source: Source, statement: ast.stmt, around: Around) -> tuple[int, int, bytes]:
    outer = around[:-1]
    while WITH_CONDITION and is_alone(statement, outer) and is_condition(outer[-1]):
        statement, outer = outer[-1], outer[:-1]  # type: ignore[assignment]
    return *source.span(statement), b"pass" if is_alone(statement, outer) else b""


def is_condition(node: ast.AST) -> bool:
    return isinstance(node, (ast.If, ast.For)) and not node.orelse


def is_alone(statement: ast.stmt, around: Around) -> bool:
    blocks = ("body", "orelse", "finalbody")
    return any(getattr(each, name, None) == [statement] for each in around for name in blocks)


def of_buffers(source: Source, call: ast.Call) -> Iterator[Change]:
    named = len(call.args) >= 2 and isinstance(call.args[0], ast.Constant)
    if name_of(call) == "register_buffer" and named and isinstance(call.args[0], ast.Constant):
        value = source.text(*source.span(call.args[1]))
        func = call.func
        if value != "None":
            owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else "self"
            text = f"{owner}.{call.args[0].value} = ({value})"
            yield KINDS[3], *source.span(call), text.encode()


def of_guards(source: Source, node: ast.If) -> Iterator[Change]:
    if node.orelse or not GUARDS.search(ast.unparse(node.test)):
        return
    calls = [name_of(each) for below in node.body for each in ast.walk(below)
             if isinstance(each, ast.Call)]  # fmt: skip
    if not (MOVERS | FREES) & set(calls) or node.body[0].lineno == node.lineno:
        return
    deeper = node.body[0].col_offset - node.col_offset
    start, end = source.span(node)
    text = source.text(source.span(node.body[0])[0], end)
    lines = text.split("\n")
    shorter = [each[deeper:] if each[:deeper].isspace() else each for each in lines[1:]]
    yield KINDS[4], start, end, "\n".join([lines[0], *shorter]).encode()


def name_of(call: ast.AST) -> str:
    func = getattr(call, "func", None)
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def arguments_of(around: Around) -> set[str]:
    return {
        each.arg
        for function in around
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for each in ast.walk(function.args)
        if isinstance(each, ast.arg)
    }


def moves_only(call: ast.Call) -> bool:
    return len(call.args) == 1 and not call.keywords and "device" in ast.unparse(call.args[0])


def parses(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        return False
    return True


if __name__ == "__main__":
    main()
