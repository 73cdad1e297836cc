"""The HTML export is one page that needs nothing else: no network, no server, no build."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from tensortrail.findings import Finding
from tensortrail.inert import digest
from tensortrail.tracer.exports.output import Text, opened
from tensortrail.tracer.exports.page_data import page_data
from tensortrail.tracer.exports.page_ranks import ranks_data
from tensortrail.tracer.exports.rows import to_json
from tensortrail.tracer.reading.ranks.run_of_ranks import RunOfRanks
from tensortrail.tracer.reading.timeline import RunTimeline

SCRIPTS = ("words", "elements", "model", "chart", "folds", "lanes", "sections", "trail", "main")
ESCAPES = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


def write(
    timeline: RunTimeline,
    findings: Sequence[Finding],
    out: Text,
    of_ranks: RunOfRanks | None = None,
) -> None:
    """`of_ranks` tells of all ranks where the timeline has only those that are shown."""
    style = _read("page.css")
    script = "".join(["'use strict';(() => {\n", *(_read(f"{n}.js") for n in SCRIPTS), "})();\n"])
    policy = (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _read("page.html")
    told = page_data(timeline, findings)
    if of_ranks is not None:
        told |= ranks_data(of_ranks, told)
    data = to_json(told).translate(ESCAPES)
    with opened(out) as file:
        for piece, value in zip(page.split("@"), (policy, style, data, script, ""), strict=True):
            file.write(piece + value)


def _read(name: str) -> str:
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")
