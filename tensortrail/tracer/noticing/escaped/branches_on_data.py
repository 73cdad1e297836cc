"""A line that asks a tensor which way to go, where a graph is captured that knows no values."""

from __future__ import annotations

import ast
import re
from traceback import walk_tb
from typing import Any

from tensortrail.tracer.identity.assignments import tree_of
from tensortrail.tracer.identity.sites import OWNERS, USER, function_name
from tensortrail.tracer.identity.storages import Storages

CAPTURES = ("torch._dynamo", "torch.fx", "torch.export")
_DATA = re.compile(r"data-dependent|Data-dependent|dynamic control flow", re.IGNORECASE)
_LINE = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')
BRANCHES = (ast.If, ast.While, ast.IfExp, ast.Assert)


def branch_on_data(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if not type(error).__module__.startswith(CAPTURES) or not _DATA.search(str(error)):
        return None
    for file, line, function in (line_told(error), _left(error)):
        node = _branch(file, line) if file else None
        if node is not None:
            return {
                "branch": type(node).__name__,
                "asks": ast.unparse(node.test)[:200],
                "branch at": [file, line, function],
            }
    return None


def line_told(error: BaseException) -> tuple[str, int, str]:
    """The line of the program that the compiler names."""
    told = str(error).partition("from user code:")[2]
    own = [each for each in _LINE.findall(told) if OWNERS[each[0]] == USER]
    return (own[-1][0], int(own[-1][1]), own[-1][2]) if own else ("", 0, "")


def _left(error: BaseException) -> tuple[str, int, str]:
    """The innermost line of the program that the exception left."""
    found = ("", 0, "")
    for frame, line in walk_tb(error.__traceback__):
        code = frame.f_code
        if OWNERS[code.co_filename] == USER:
            found = code.co_filename, line, function_name(code)
    return found


def _branch(file: str, line: int) -> ast.If | ast.While | ast.IfExp | ast.Assert | None:
    tree = tree_of(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, BRANCHES):
            test = node.test
            if test.lineno <= line <= (test.end_lineno or test.lineno):
                return node
    return None
