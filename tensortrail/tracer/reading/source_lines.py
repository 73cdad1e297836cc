"""Events have source lines behind them, and some have places that can be edited."""

from __future__ import annotations

import ast
import os
import stat
from collections.abc import Sequence
from functools import lru_cache

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.shared.objects import called

LARGEST = 16_000_000
"""The name of the file comes from a trail, which may be anybody's."""


def line(site: Site, not_after: float) -> str:
    return whole_line(site, not_after).strip()


def whole_line(site: Site, not_after: float) -> str:
    lines = _text(site.file, not_after).splitlines()
    return lines[site.line - 1] if 0 < site.line <= len(lines) else ""


def changed(file: str, not_after: float) -> str:
    """Why the file is not the one that ran; "" if it is."""
    try:
        status = os.stat(file)
    except (OSError, ValueError) as error:
        return f"it cannot be read: {getattr(error, 'strerror', error)}"
    if not stat.S_ISREG(status.st_mode):
        return "it is no file"
    return "it changed since the run" if status.st_mtime > not_after else ""


def call(site: Site, function: str, not_after: float) -> Site | None:
    found = _call(site, function, not_after)
    return _place(site, found, not_after) if found else None


def argument(site: Site, function: str, position: int, not_after: float) -> Site | None:
    found = _call(site, function, not_after)
    if found is None or len(found.args) <= position:
        return None
    chosen = found.args[position]
    return None if isinstance(chosen, ast.Starred) else _place(site, chosen, not_after)


def statement(site: Site, not_after: float) -> tuple[int, int] | None:
    """First and last line of the statement around the site, or of the site where the statement
    holds others; None if the file changed since."""
    tree = _tree(site.file, not_after) if line(site, not_after) else None
    if tree is None:
        return None
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and node.lineno <= site.line <= (node.end_lineno or node.lineno)
    ]
    inner = max(around, key=lambda node: (node.lineno, node.col_offset), default=None)
    if inner is None or hasattr(inner, "body"):
        return site.line, site.end_line
    return inner.lineno, inner.end_lineno or inner.lineno


def tree(file: str, not_after: float) -> ast.Module | None:
    return _tree(file, not_after) if _text(file, not_after) else None


def replace(file: str, node: ast.AST, text: str, not_after: float) -> Edit:
    assert isinstance(node, (ast.expr, ast.stmt))
    return Edit(_place(Site(file, node.lineno), node, not_after), text)


def insert(file: str, line: int, text: str, not_after: float) -> Edit:
    lines = _text(file, not_after).encode().splitlines(keepends=True)
    at = sum(map(len, lines[: line - 1]))
    ending = "\r\n" if lines and lines[0].endswith(b"\r\n") else "\n"
    before = ending if line > len(lines) and lines and not lines[-1].endswith(b"\n") else ""
    return Edit(Site(file, line, start=at, end=at), before + text.replace("\n", ending))


def fix(description: str, safety: Safety, edits: Sequence[Edit]) -> Fix | None:
    for file in {edit.site.file for edit in edits}:
        try:
            with open(file, "rb") as opened:
                data = opened.read()
            inside = sorted((e for e in edits if e.site.file == file), key=lambda e: -e.site.start)
            for edit in inside:
                data = data[: edit.site.start] + edit.text.encode() + data[edit.site.end :]
            ast.parse(data)
        except (OSError, SyntaxError, ValueError):
            return None
    return Fix(description, safety, tuple(edits))


@lru_cache(maxsize=64)
def _text(file: str, not_after: float) -> str:
    """The source, unless it changed since: its lines would be other ones."""
    try:
        status = os.stat(file)
        readable = stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST
        if status.st_mtime > not_after or not readable:
            return ""
        with open(file, encoding="utf-8", newline="") as opened:
            return opened.read()
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=16)
def _tree(file: str, not_after: float) -> ast.Module | None:
    try:
        return ast.parse(_text(file, not_after))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _call(site: Site, function: str, not_after: float) -> ast.Call | None:
    """The only call of that name which begins on the lines of the site or goes over them."""
    tree = _tree(site.file, not_after)
    found = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call)
        and node.lineno <= site.end_line
        and site.line <= (node.end_lineno or node.lineno)
        and called(node) == function
    ]
    return found[0] if len(found) == 1 else None


def _place(site: Site, node: ast.expr | ast.stmt, not_after: float) -> Site:
    text = _text(site.file, not_after)
    starts = [0]
    for each in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(each))
    end_line = node.end_lineno or node.lineno
    return Site(
        site.file,
        node.lineno,
        node.col_offset + 1,
        end_line,
        (node.end_col_offset or 0) + 1,
        starts[node.lineno - 1] + node.col_offset,
        starts[end_line - 1] + (node.end_col_offset or 0),
        site.function,
        source=ast.get_source_segment(text, node) or "",
    )
