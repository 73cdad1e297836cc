"""One file for each output format; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from tensortrail.config import FORMATS
from tensortrail.findings import Report

STATISTICS = "statistics"
TELL_OF_RULES = frozenset({"sarif"})
"""Formats that tell of the rules, not of findings alone."""


def render(format: str, report: Report, *, color: bool = False, width: int = 100) -> str:
    if format not in (*FORMATS, STATISTICS):
        raise ValueError(f"no output format {format!r}; there are {', '.join(FORMATS)}")
    module = import_module(f"{__name__}.{format}")
    text: str = module.render(report, color=color, width=width)
    return text
