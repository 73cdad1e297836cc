"""The lines of a .gitignore file as most are written, matched without a library: importing that
takes longer than listing the folders of a project."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

_PART = r"(?:[^\s\\\[\]?*!#/]|\?|\[[A-Za-z0-9]+\])"
_NAME = rf"(?!\*(?:/|$)){_PART}*\*?{_PART}*(?<=[^/])"
_PLAIN = re.compile(rf"/?{_NAME}(?:/{_NAME})*/?")
"""Names with at most one star each, and nothing that takes another line back."""
_TAME = re.compile(r"(?=.*\w)(?!.*\*\*\*)(?!(?:.*\*\*){3})!?[^\[\\]*")
"""What else can be used as it stands."""
_WILD = re.compile(r"[*?]+")
_SPECIAL = re.compile(r"\[\w+\]|\*|\?|[^\[*?]+")
_MEANT = {"*": "[^/]*", "?": "[^/]"}
_ANYWHERE = "(?:.+/)?"


class PlainIgnores:
    """What the plain ones of some lines say of a path, and whether another may say something."""

    def __init__(self, lines: Sequence[str]) -> None:
        stripped = [line.rstrip() for line in lines]
        self._written = {n: _regex(each) for n, each in enumerate(stripped) if is_plain(each)}
        self._others = [_needed(each) for each in stripped if not is_plain(each)]

    def others_may_fit(self, path: str) -> bool:
        return any(all(part in path for part in needed) for needed in self._others)

    def last(self, path: str) -> int | None:
        """The number of the line that decides: the last one about the path itself, else the last
        one about a folder that it is or lies in; None if none says anything."""
        if not self._any.match(path):
            return None
        found = [
            (not match.group().endswith("/"), number)
            for number, each in self._written.items()
            if (match := re.match(each, path)) is not None
        ]
        return max(found)[1]

    @cached_property
    def _any(self) -> re.Pattern[str]:
        inside = [e[len(_ANYWHERE) :] for e in self._written.values() if e.startswith(_ANYWHERE)]
        fixed = [each for each in self._written.values() if not each.startswith(_ANYWHERE)]
        in_any_folder = [f"{_ANYWHERE}(?:{'|'.join(inside)})"] if inside else []
        return re.compile("|".join(in_any_folder + fixed) or r"(?!)")


def is_plain(line: str) -> bool:
    return _PLAIN.fullmatch(line.rstrip()) is not None


def is_tame(line: str) -> bool:
    """No line of this form is refused."""
    return _TAME.fullmatch(line.rstrip()) is not None


def _needed(line: str) -> list[str]:
    """What stands in every path that the line fits, as far as that can be told from a tame one."""
    parts = _WILD.split(line.removeprefix("!")) if is_tame(line) else []
    return [each.strip("/") for each in parts]


def _regex(line: str) -> str:
    """One name is looked for in every folder, more than one below the file's own."""
    names = line.strip("/")
    anywhere = "" if "/" in line.rstrip("/") else _ANYWHERE
    body = "".join(
        _MEANT.get(each, each if each.startswith("[") else re.escape(each))
        for each in _SPECIAL.findall(names)
    )
    return anywhere + body + ("/" if line.endswith("/") else "(?:/|$)")
