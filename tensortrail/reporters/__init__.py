"""One file for each output format; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

from tensortrail.findings import Report

FORMATS = ("text", "concise", "json", "sarif", "github")


def render(format: str, report: Report, *, color: bool = False, width: int = 100) -> str:
    module = import_module(f"{__name__}.{format}")
    text: str = module.render(report, color=color, width=width)
    return text
