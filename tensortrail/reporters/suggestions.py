"""The settings that a run calls for: a patch with its reasons, and what to set by hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from tensortrail.findings import Setting, Suggestion
from tensortrail.inert import inert
from tensortrail.reporters.json import setting as told
from tensortrail.reporters.jsontext import to_json


def as_text(suggestions: Sequence[Suggestion], diff: str) -> str:
    """A patch with comments: what stands between and behind its parts is no part of a diff."""
    lines: list[str] = []
    for each in suggestions:
        if not each.left:
            lines += _reasons(each)
    text = "".join(f"{line}\n" for line in lines) + diff
    return text + "".join(f"{line}\n" for each in suggestions for line in _by_hand(each))


def as_json(suggestions: Sequence[Suggestion], diff: str, problems: Sequence[str]) -> str:
    return to_json({
        "settings": [_told(each) for each in suggestions],
        "patch": diff,
        "problems": [inert(each) for each in problems],
    })  # fmt: skip


def _told(each: Suggestion) -> dict[str, Any]:
    return told(each.setting) | {
        "findings": [
            {"code": found.code, "file": found.site.file, "line": found.site.line}
            for found in each.findings
        ],
        "or": [told(other) for other in each.others],
        "in_patch": not each.left,
        "left": inert(each.left),
        "snippet": snippet(each.setting),
    }


def _reasons(each: Suggestion) -> Iterator[str]:
    setting = each.setting
    for found in each.findings:
        yield inert(f"# {found.code} {found.site.place}: {found.name}")
    yield inert(f"#   {setting.library} {setting.name}={setting.value}: {setting.why}")
    for other in each.others:
        place = f" ({other.place})" if other.place else ""
        yield inert(f"#   or {other.library} {other.name}={other.value}{place}: {other.why}")


def _by_hand(each: Suggestion) -> Iterator[str]:
    if each.left:
        yield from _reasons(each)
        place = f", {each.setting.place}" if each.setting.place else ""
        yield inert(f"#   by hand{place}: {each.left}")
        if line := snippet(each.setting):
            yield line


def snippet(setting: Setting) -> str:
    """As Python or a shell reads it, a comment where that would be no such line; "" where it is
    neither an argument nor of the environment."""
    return "\n".join(
        each if _READS.match(each) else f"# {each}" for each in map(inert, _lines(setting))
    )


def _lines(setting: Setting) -> Iterator[str]:
    if setting.where == "environment":
        yield f"export {setting.name}={shlex.quote(setting.value)}"
    elif setting.call:
        if setting.imports:
            yield setting.imports
        yield f"{setting.call}(..., {setting.name}={setting.value})"


_READS = re.compile(r"export \w+=|from [\w.]+ import |\w+\(\.\.\., \w+=")
