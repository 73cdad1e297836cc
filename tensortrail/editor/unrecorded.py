"""Functions in which the last run recorded nothing, for editors to fade."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from tensortrail.editor.buffers import Buffer
from tensortrail.findings import Site

if TYPE_CHECKING:
    from tensortrail.tracer.reading.lens import FileFacts

CODE = "last-run"


def unrecorded(name: str, program: bytes, facts: FileFacts) -> list[Site]:
    """The outermost ones; none where the file is not the text that ran."""
    if facts.changed or not facts.recorded:
        return []
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [_site(name, each) for each in _functions(tree) if not _was_recorded(each, facts)]


def faded(buffer: Buffer, sites: tuple[Site, ...]) -> Iterator[tuple[str, lsp.Diagnostic]]:
    """With the document that each belongs to. Clients that know the tag show no squiggle."""
    for site in sites:
        document, where = buffer.place(site)
        message = f"the last run recorded no tensor in {site.function}"
        yield (
            document,
            lsp.Diagnostic(
                where,
                message,
                severity=lsp.DiagnosticSeverity.Hint,
                code=CODE,
                source="tensortrail",
                tags=[lsp.DiagnosticTag.Unnecessary],
            ),
        )


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[_Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, _Function):
            yield node
        else:
            yield from _functions(node)


def _was_recorded(function: _Function, facts: FileFacts) -> bool:
    last = function.end_lineno or function.lineno
    return any(function.lineno <= line <= last for line in facts.recorded)


def _site(name: str, function: _Function) -> Site:
    last = function.body[-1]
    start = (function.lineno, function.col_offset + 1)
    end = (last.end_lineno or function.lineno, (last.end_col_offset or 0) + 1)
    return Site(name, *start, *end, function=function.name)
