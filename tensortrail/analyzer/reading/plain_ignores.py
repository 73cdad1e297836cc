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
_LITERAL = re.compile(r"[^\[*?]+")
_CLASS = re.compile(r"\[\w+\]")
_MEANT = {"*": "[^/]*", "?": "[^/]"}
_ANYWHERE = "(?:.+/)?"


class PlainIgnores:
    """What the plain ones of some lines say of a path, and whether another may say something.

    Most lines have a name without a star: only those of which it is on the path are looked at."""

    def __init__(self, lines: Sequence[str]) -> None:
        stripped = [line.rstrip() for line in lines]
        self._written = {n: _regex(each) for n, each in enumerate(stripped) if is_plain(each)}
        self._others = [_needed(each) for each in stripped if not is_plain(each)]
        self._by_name: dict[str, list[int]] = {}
        self._nameless: dict[int, list[str]] = {}
        """With what stands in every path that the line fits."""
        for number in self._written:
            if name := _name_in(stripped[number]):
                self._by_name.setdefault(name, []).append(number)
            else:
                self._nameless[number] = _LITERAL.findall(
                    _CLASS.sub("*", stripped[number].strip("/"))
                )

    def others_may_fit(self, path: str) -> bool:
        return any(all(part in path for part in needed) for needed in self._others)

    def last(self, path: str) -> int | None:
        """The number of the line that decides: the last one about the path itself, else the last
        one about a folder that it is or lies in; None if none says anything."""
        on_path = self._by_name.keys() & path.split("/")
        numbers = [number for name in on_path for number in self._by_name[name]]
        if self._any_nameless.match(path):
            numbers += [n for n, parts in self._nameless.items() if all(p in path for p in parts)]
        found = [
            (not match.group().endswith("/"), number)
            for number in numbers
            if (match := re.match(self._written[number], path)) is not None
        ]
        return max(found)[1] if found else None

    @cached_property
    def _any_nameless(self) -> re.Pattern[str]:
        written = [self._written[number] for number in self._nameless]
        inside = [each[len(_ANYWHERE) :] for each in written if each.startswith(_ANYWHERE)]
        fixed = [each for each in written if not each.startswith(_ANYWHERE)]
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


def _name_in(line: str) -> str:
    """A name that stands on every path that the line fits; "" if all have wild parts."""
    return next((each for each in line.strip("/").split("/") if _LITERAL.fullmatch(each)), "")
