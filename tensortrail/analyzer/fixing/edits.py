"""Edits of a file's bytes, and the two rewrites that need libcst to keep the layout."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tensortrail.analyzer.reading.source import Source
from tensortrail.findings import Edit

if TYPE_CHECKING:
    import libcst

    Build = Callable[[Sequence[libcst.BaseStatement]], Sequence[libcst.BaseStatement]]

_BARE_LINE_FEED = re.compile(r"(?<!\r)\n")


def apply(data: bytes, edits: Sequence[Edit], begin: int = 0) -> bytes:
    """The bytes with the edits made; `begin` is where in the file they begin."""
    parts: list[bytes] = []
    stop = len(data)
    for edit in sorted(edits, key=lambda edit: (edit.site.start, edit.site.end), reverse=True):
        start, end = edit.site.start - begin, edit.site.end - begin
        parts += [data[end:stop], edit.text.encode()]
        stop = start
    return b"".join([data[:stop], *reversed(parts)])


def with_line_ends(source: Source, edit: Edit) -> Edit:
    """New lines end like their neighbours; those that are kept end as they did."""
    end = source.line_end(edit.site.start)
    if end == "\n" or "\n" not in edit.text:
        return edit
    return replace(edit, text=_BARE_LINE_FEED.sub(end, edit.text))


def under_if(source: Source, statement: ast.stmt, condition: str) -> Edit | None:
    import libcst

    def build(body: Sequence[libcst.BaseStatement]) -> Sequence[libcst.BaseStatement]:
        test = libcst.parse_expression(condition)
        return [libcst.If(test, libcst.IndentedBlock(body))]

    return _rebuilt(source, statement, statement, build)


def under_try_finally(source: Source, first: ast.stmt, last: ast.stmt) -> Edit | None:
    import libcst

    def build(body: Sequence[libcst.BaseStatement]) -> Sequence[libcst.BaseStatement]:
        tried, restored = body[:1], body[1:]
        above = getattr(restored[0], "leading_lines", ())
        comments = [line for line in above if line.comment is not None]
        restored = [restored[0].with_changes(leading_lines=comments), *restored[1:]]
        finalbody = libcst.Finally(libcst.IndentedBlock(restored))
        return [libcst.Try(libcst.IndentedBlock(tried), finalbody=finalbody)]

    return _rebuilt(source, first, last, build)


def _rebuilt(source: Source, first: ast.stmt, last: ast.stmt, build: Build) -> Edit | None:
    """The whole lines of the statements, replaced by what `build` makes of them."""
    import libcst

    start = source.offset(first.lineno, 0)
    end_line = last.end_lineno or last.lineno
    end = source.offset(end_line, len(source.line(end_line).encode()))
    lines = source.text(start, end)
    indent = lines[: len(lines) - len(lines.lstrip(" \t"))]
    if source.offset(first.lineno, first.col_offset) != start + len(indent.encode()):
        return None  # shares its line with something else
    try:
        text = _lines_rebuilt(lines, indent, source.line_end(start), source.indent_unit, build)
    except libcst.ParserSyntaxError:
        return None
    return None if text is None else Edit(source.site(start, end), text)


def _lines_rebuilt(
    lines: str, indent: str, newline: str, indent_unit: str, build: Build
) -> str | None:
    """Indented lines are read as the body of an `if`, and keep their indent."""
    import libcst

    head = f"if 1:{newline}" if indent else ""
    tree = libcst.parse_module(head + lines + newline)
    holder = tree.body[0]
    inner = holder.body if indent else None
    body = inner.body if isinstance(inner, libcst.IndentedBlock) else tree.body
    if any(isinstance(each, libcst.SimpleStatementLine) and len(each.body) > 1 for each in body):
        return None
    new_body = build(body)
    if isinstance(inner, libcst.IndentedBlock):
        new_body = [holder.with_changes(body=inner.with_changes(body=new_body, indent=indent))]
    tree = tree.with_changes(body=new_body, default_indent=indent_unit)
    return tree.code.removeprefix(head).rstrip("\r\n")
