"""After a hit: other places in the project like the flagged expression.

Fixes of real bugs covered one of four call sites, and one of five."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tensortrail.analyzer.reading.pieces import with_all
from tensortrail.analyzer.reading.python_files import python_of
from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.findings import Finding, Site

MOST = 10
_TOO_COMMON = 40
"""Files: words found in more of them say too little about a shape."""
_LARGEST = 1_000_000
"""Bytes of a file that is looked through; larger ones are generated, and nobody mends those."""
_COMMON_NAMES = frozenset({"self", "cls", "torch", "device", "to", "get", "dtype", "type", "shape"})
_KINDS = (ast.Call, ast.Compare)
_DROPPED = "dropped "
"""Before the shape of an expression whose value nobody uses: where it is used, the risk is not."""


def with_siblings(findings: Sequence[Finding], files: Iterable[str], texts: Texts) -> list[Finding]:
    """The findings, each with the sites of its shape that are no findings themselves; files are
    read only if they may have one."""
    shapes: dict[Finding, tuple[str, frozenset[bytes]]] = {}
    for finding in findings:
        shape = _shape_of_text(finding.site.source, finding)
        if shape is not None:
            shapes[finding] = shape
    if not shapes:
        return list(findings)
    places = _places(dict(shapes.values()), files, texts)
    reported: dict[str, list[Site]] = {}
    for finding in findings:
        reported.setdefault(finding.site.file, []).append(finding.site)
    result = []
    for finding in findings:
        known = shapes[finding][0] if finding in shapes else ""
        others = [
            site
            for site in places.get(known, ())
            if not any(_is_within(site, each) for each in reported.get(site.file, ()))
        ]
        result.append(replace(finding, siblings=tuple(others[:MOST])) if others else finding)
    return result


def _shape_of_text(text: str, finding: Finding) -> tuple[str, frozenset[bytes]] | None:
    """The shape of the flagged expression and its words; None if it says too little."""
    site = finding.site
    lines = text.split("\n")
    if not text or site.start < 0:
        return None
    lines[-1] = lines[-1][: site.end_column - 1] if len(lines) > 1 else lines[-1]
    flagged = "\n".join(lines)[site.column - 1 :]
    if len(lines) == 1:
        flagged = lines[0][site.column - 1 : site.end_column - 1]
    try:
        node = ast.parse(flagged.strip()).body[0]
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        return None
    expression = node.value if isinstance(node, (ast.Expr, ast.Return, ast.Assign)) else None
    if not isinstance(expression, _KINDS):
        return None
    words = [word for word in _words(expression) if word not in _COMMON_NAMES]
    if not words:
        return None
    risk = _DROPPED if isinstance(node, ast.Expr) and _stands_alone(text, site) else ""
    if not risk and _names_only(expression):
        return None
    return risk + shape_of(expression), frozenset(word.encode() for word in words)


def _names_only(node: ast.expr) -> bool:
    """`model.state_dict()`: what is risky about it is the object, and others have other objects."""
    if not isinstance(node, ast.Call) or node.args or node.keywords:
        return False
    owner = node.func
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name) and owner is not node.func


def _stands_alone(text: str, site: Site) -> bool:
    """Nothing is made of the flagged expression: it is a statement."""
    lines = text.split("\n")
    before, after = lines[0][: site.column - 1], lines[-1][site.end_column - 1 :]
    return before.rpartition(";")[2].strip() == "" and after.strip()[:1] in ("", "#", ";")


def shape_of(node: ast.expr) -> str:
    """The expression with local names made alike; callees, attributes and constants stay.

    "" for one that is nested too deeply: it is like no other."""
    callees = {id(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    parts: list[str] = []

    def visit(each: ast.AST) -> None:
        if isinstance(each, ast.Name):
            parts.append(each.id if id(each) in callees else "_")
            return
        parts.append(type(each).__name__)
        if isinstance(each, ast.Attribute):
            root = each.value
            parts.append(each.attr)
            if isinstance(root, ast.Attribute) and id(each) not in callees:
                parts.append("_")  # however deep the owner lies
                return
        elif isinstance(each, ast.Constant):
            parts.append(repr(each.value).replace(" ", "_"))
        elif isinstance(each, ast.keyword):
            parts.append(each.arg or "**")
        parts.append("(")
        for child in ast.iter_child_nodes(each):
            if not isinstance(child, ast.expr_context):
                visit(child)
        parts.append(")")

    try:
        visit(node)
    except RecursionError:
        return ""
    return " ".join(parts)


def _words(node: ast.AST) -> Iterable[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Name):
            yield each.func.id


def _places(
    shapes: dict[str, frozenset[bytes]], files: Iterable[str], texts: Texts
) -> dict[str, list[Site]]:
    found: dict[str, list[Site]] = {}
    for path, wanted in _candidates(shapes, files, texts).items():
        try:
            data = python_of(path, texts.of(path))
            source = Source(path, data)
            # a comment on the encoding, which `ast` has to see, may stand in another statement
            words = [shapes[shape] for shape in wanted]
            tree = ast.parse(with_all(data, words) if source.editable else data)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        lines = sorted({line for shape in wanted for line in _lines(source, shape, shapes[shape])})
        dropped: set[ast.expr] = set()
        counts: Counter[str] = Counter()
        for node in _on_lines(tree, lines):
            if isinstance(node, ast.Expr):
                dropped.add(node.value)
            elif isinstance(node, _KINDS):
                shape = (_DROPPED if node in dropped else "") + shape_of(node)
                if shape in wanted and counts[shape] <= MOST:
                    counts[shape] += 1
                    found.setdefault(shape, []).append(source.site(*source.span(node)))
    for sites in found.values():
        sites.sort(key=lambda site: (site.file, site.line, site.column))
    return found


def _lines(source: Source, shape: str, words: Iterable[bytes]) -> Sequence[int]:
    """Lines of which every expression of that shape has one: those with its rarest word."""
    parts = set(shape.encode().split())
    certain = [source.lines_with(word) for word in words if word in parts]
    everywhere = range(1, source.position(len(source.data))[0] + 1)
    return min(certain, key=len) if certain else everywhere


def _on_lines(tree: ast.AST, lines: Sequence[int]) -> Iterator[ast.AST]:
    """The nodes that reach over one of the lines, parents before children."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        first = getattr(node, "lineno", None)
        if first is not None:
            first = min([first, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            at = bisect_left(lines, first)
            if at == len(lines) or lines[at] > node.end_lineno:  # type: ignore[attr-defined]
                continue
        yield node
        stack += reversed(list(ast.iter_child_nodes(node)))


def _candidates(
    shapes: dict[str, frozenset[bytes]], files: Iterable[str], texts: Texts
) -> dict[str, set[str]]:
    """The files that have all words of a shape; a shape of words that are everywhere has none."""
    holders: dict[str, list[str]] = {shape: [] for shape in shapes}
    for path in files:
        try:
            data = texts.of(path)
        except OSError:
            continue
        for shape, words in shapes.items() if len(data) <= _LARGEST else ():
            if len(holders[shape]) <= _TOO_COMMON and all(word in data for word in words):
                holders[shape].append(path)
    found: dict[str, set[str]] = {}
    for shape, paths in holders.items():
        for path in paths if len(paths) <= _TOO_COMMON else ():
            found.setdefault(path, set()).add(shape)
    return found


def _is_within(one: Site, flagged: Site) -> bool:
    first, last = (flagged.line, flagged.column), (flagged.end_line, flagged.end_column)
    return one.file == flagged.file and first <= (one.line, one.column) < last
