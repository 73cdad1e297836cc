"""Syntax of later Pythons than the one that runs the check, by what this one refuses of it."""

from __future__ import annotations

import re

_LONGEST = 400
"""Characters of a line that are looked at."""
_LINES = (
    r"\s*type\s+\w+\s*(?:\[[^=]*)?=",  # type A = int
    r"\s*(?:class|(?:async\s+)?def)\s+\w+\s*\[",  # class B[T], def f[T](x)
    r"\s*lazy\s+(?:import|from)\s",
    r"\s*except\s+[\w.]+(?:\s*,\s*(?:\w+\.)*[A-Z]\w*)+\s*:",  # of Python 2 is: except A, error
    r".*\b(?:[tT]|[rR][tT]|[tT][rR])[\"']",  # t"{x}"
    r".*\b(?:[fF]|[rR][fF]|[fF][rR])([\"'])(?:(?!\1).)*"
    r"\{[^\"'}]*(?:\1[^\"'}]*\1[^\"'}]*)+\}",  # f"{x["a"]["b"]}"
)
_PATTERNS = tuple(map(re.compile, _LINES))
_REFUSED = "f-string expression part cannot include"
"""A backslash or a comment, until Python 3.12."""


def is_newer(error: SyntaxError) -> bool:
    line = (error.text or "")[:_LONGEST]
    return error.msg.startswith(_REFUSED) or any(each.match(line) for each in _PATTERNS)
