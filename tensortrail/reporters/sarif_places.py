"""Where things are, in SARIF's words: artifacts, regions, replacements."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from tensortrail.findings import Edit, Site

ROOT = "%SRCROOT%"
_LONGEST_SNIPPET = 2000


@dataclass(frozen=True)
class Places:
    """Files below `root` are named from there, the others by their whole path."""

    root: str

    def location(self, site: Site) -> dict[str, Any]:
        site = site.in_file
        physical: dict[str, Any] = {
            "artifactLocation": self.artifact(site.file),
            "region": _region(site),
        }
        if site.source and len(site.source) <= _LONGEST_SNIPPET:
            physical["region"]["snippet"] = {"text": _flagged(site)}
            physical["contextRegion"] = {
                "startLine": site.line,
                "endLine": site.end_line,
                "snippet": {"text": site.source},
            }
        return {"physicalLocation": physical}

    def artifact(self, file: str) -> dict[str, str]:
        absolute = os.path.abspath(file)
        base = os.path.abspath(self.root).rstrip(os.sep) + os.sep if self.root else ""
        if base and absolute.startswith(base):
            return {"uri": _quoted(absolute[len(base) :], safe="/"), "uriBaseId": ROOT}
        return {"uri": _file_uri(absolute)}

    def changes(self, edits: Sequence[Edit]) -> list[dict[str, Any]]:
        files: dict[str, list[Edit]] = {}
        for edit in edits:
            files.setdefault(edit.site.file, []).append(edit)
        return [
            {
                "artifactLocation": self.artifact(file),
                "replacements": [
                    {"deletedRegion": _region(each.site), "insertedContent": {"text": each.text}}
                    for each in group
                ],
            }
            for file, group in files.items()
        ]


def folder_uri(path: str) -> str:
    return _file_uri(os.path.abspath(path)).rstrip("/") + "/" if path.strip("/") else "file:///"


def _region(site: Site) -> dict[str, Any]:
    if not site.line:  # a file without lines
        return {"byteOffset": max(site.start, 0), "byteLength": max(site.end - site.start, 0)}
    point = (site.line, site.column) == (site.end_line, site.end_column)
    if point and site.start < 0:  # a line is known, no more
        return {"startLine": site.line} | ({"startColumn": site.column} if site.column > 1 else {})
    region = {
        "startLine": site.line,
        "startColumn": site.column,
        "endLine": site.end_line,
        "endColumn": site.end_column,
    }
    if site.start >= 0:
        region |= {"byteOffset": site.start, "byteLength": site.end - site.start}
    return region


def _flagged(site: Site) -> str:
    lines = site.source.split("\n")
    if len(lines) > site.end_line - site.line and site.end_column > 1:
        lines[-1] = lines[-1][: site.end_column - 1]
    lines[0] = lines[0][site.column - 1 :]
    return "\n".join(lines)


def _file_uri(path: str) -> str:
    posix = PurePath(path).as_posix()
    return "file://" + _quoted(posix if posix.startswith("/") else f"/{posix}", safe="/:")


def _quoted(path: str, safe: str) -> str:
    """The very bytes of a file's name, where it has a name in bytes."""
    try:
        data = path.replace(os.sep, "/").encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        data = path.encode("utf-8", "backslashreplace")
    return quote(data, safe=safe)
