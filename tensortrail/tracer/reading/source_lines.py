"""Events have source lines behind them, and some have places that can be edited."""

from __future__ import annotations

import ast
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.shared.objects import called
from tensortrail.tracer.trail.source_digest import bytes_of, source_digest


@dataclass(frozen=True, eq=False)
class Ran:
    """What tells whether a source file is still the one that ran."""

    started: float
    """The run; of a file without digest, the time of its last change decides."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by real path; "" where processes of the run differed."""

    def digest(self, file: str) -> str:
        """Of the file that ran; "" if that is not known."""
        known = self.digests.get(os.path.realpath(file))
        return source_digest(file, self.started) if known is None else known

    def text(self, file: str) -> bytes:
        """The file as it ran. If it is another one now: ValueError, which says so."""
        digest = self.digests.get(os.path.realpath(file))
        if digest == "":
            raise ValueError("processes of the run had different texts of it")
        data = bytes_of(file, self.started if digest is None else math.inf)
        if digest is not None and sha256(data).hexdigest() != digest:
            raise ValueError("it changed since the run")
        return data


def line(site: Site, ran: Ran) -> str:
    return whole_line(site, ran).strip()


def whole_line(site: Site, ran: Ran) -> str:
    lines = _text(site.file, ran).splitlines()
    return lines[site.line - 1] if 0 < site.line <= len(lines) else ""


def changed(file: str, ran: Ran) -> str:
    """Why the file is not the one that ran; "" if it is."""
    try:
        ran.text(file)
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    except ValueError as error:
        return str(error)
    return ""


def call(site: Site, function: str, ran: Ran) -> Site | None:
    found = _call(site, function, ran)
    return _place(site, found, ran) if found else None


def argument(site: Site, function: str, position: int, ran: Ran) -> Site | None:
    found = _call(site, function, ran)
    if found is None or len(found.args) <= position:
        return None
    chosen = found.args[position]
    return None if isinstance(chosen, ast.Starred) else _place(site, chosen, ran)


def statement(site: Site, ran: Ran) -> tuple[int, int] | None:
    """First and last line of the statement around the site, or of the site where the statement
    holds others; None if the file changed since."""
    tree = _tree(site.file, ran) if line(site, ran) else None
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


def tree(file: str, ran: Ran) -> ast.Module | None:
    return _tree(file, ran) if _text(file, ran) else None


def replace(file: str, node: ast.AST, text: str, ran: Ran) -> Edit:
    assert isinstance(node, (ast.expr, ast.stmt))
    return Edit(_place(Site(file, node.lineno), node, ran), text)


def insert(file: str, line: int, text: str, ran: Ran) -> Edit:
    lines = _text(file, ran).encode().splitlines(keepends=True)
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
def _text(file: str, ran: Ran) -> str:
    """The source, unless it changed since: its lines would be other ones."""
    try:
        return ran.text(file).decode("utf-8")
    except (OSError, ValueError):
        return ""


@lru_cache(maxsize=16)
def _tree(file: str, ran: Ran) -> ast.Module | None:
    try:
        return ast.parse(_text(file, ran))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _call(site: Site, function: str, ran: Ran) -> ast.Call | None:
    """The only call of that name which begins on the lines of the site or goes over them."""
    tree = _tree(site.file, ran)
    found = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call)
        and node.lineno <= site.end_line
        and site.line <= (node.end_lineno or node.lineno)
        and called(node) == function
    ]
    return found[0] if len(found) == 1 else None


def _place(site: Site, node: ast.expr | ast.stmt, ran: Ran) -> Site:
    data = _text(site.file, ran).encode()
    starts = [0]
    for each in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(each))
    end_line = node.end_lineno or node.lineno
    start = starts[node.lineno - 1] + node.col_offset
    end = starts[end_line - 1] + (node.end_col_offset or 0)
    return Site(
        site.file,
        node.lineno,
        node.col_offset + 1,
        end_line,
        (node.end_col_offset or 0) + 1,
        start,
        end,
        site.function,
        source=data[start:end].decode(),
    )
