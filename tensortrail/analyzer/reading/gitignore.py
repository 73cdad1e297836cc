"""The lines of a .gitignore file, matched in bounded time whatever they hold."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tensortrail.analyzer.reading.plain_ignores import PlainIgnores, is_plain, is_tame
from tensortrail.files import read

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_LARGEST = 1_000_000
_LONGEST_LINE = 4_000
_STAR = "[^/]*"
_FLAT = re.compile(r"(?:\\.|\[\^/\]|\[[^\]/]*\]|[^\\/()\[\]|])*", re.DOTALL)
"""What matches a fixed number of characters of one name."""
_MOST_FOLDERS = 3
"""`**` of a line: each may stand for any number of folders."""


class IgnoreFile:
    """`base` is the folder that the lines are relative to; each comes with its number."""

    def __init__(self, path: str, base: str, lines: Sequence[tuple[int, str]]) -> None:
        self.path, self.base, self.lines = path, base, lines
        self._plain = PlainIgnores([line for _, line in lines])
        self._below = os.path.join(base, "")

    def says(self, absolute: str, is_folder: bool) -> tuple[bool | None, str]:
        """Whether the path is ignored, None if no line is about it, and the line in words."""
        relative = self._relative(absolute).replace(os.sep, "/") + "/" * is_folder
        if not self._plain.others_may_fit(relative):
            index = self._plain.last(relative)
            return (None, "") if index is None else (True, self._told(index))
        found: Any = self._spec.check_file(relative)
        if found.include is None or found.index is None:
            return None, ""
        return bool(found.include), self._told(found.index)

    def _relative(self, absolute: str) -> str:
        if absolute.startswith(self._below):
            return absolute[len(self._below) :]
        return os.path.relpath(absolute, self.base)

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        """Made where a line fits, perhaps, that takes the library to tell."""
        from pathspec import GitIgnoreSpec

        return GitIgnoreSpec([_pattern(line) for _, line in self.lines])

    def _told(self, index: int) -> str:
        number, text = self.lines[index]
        return f"{text!r} ({self.path}:{number}); --no-respect-gitignore checks them"


def read_ignores(path: str, base: str, problems: list[str]) -> list[IgnoreFile]:
    """The file, if it is there and says anything; what it says wrongly is a problem, no error."""
    try:
        text = read(path, _LARGEST).decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        problems.append(f"{path}: not used: {error.strerror or error}")
        return []
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if _says(line)]
    if not lines:
        return []
    kept = []
    for number, line in lines:
        usable = len(line) <= _LONGEST_LINE and (is_plain(line) or is_tame(line))
        pattern = None if usable else _pattern(line)
        if usable or (pattern is not None and pattern.include is not None):
            kept.append((number, line))
        elif pattern is None:
            problems.append(f"{path}:{number}: this pattern cannot be used")
    return [IgnoreFile(path, base, kept)]


def bounded(regex: str) -> str | None:
    """The same regular expression without the backtracking of many stars in one name; None if
    that cannot be had.

    Where a star follows, the first place at which a part fits is as good as any later one, so
    there is nothing to come back for."""
    first, *parts = regex.split(_STAR)
    if regex.count(".+") + regex.count(".*") > _MOST_FOLDERS:
        return None
    done = [first]
    for number, part in enumerate(parts):
        flat = _FLAT.match(part)
        rest = part[flat.end() :] if flat else part
        if rest and rest[0] not in "/(":
            return None
        if rest or number == len(parts) - 1:
            done.append(_STAR + part)
        elif part:
            done.append(f"(?=(?P<t{number}>[^/]*?{part}))(?P=t{number})")
    return "".join(done)


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _pattern(line: str) -> Any:
    from pathspec import GitIgnoreSpec

    if len(line) > _LONGEST_LINE:
        return None
    try:
        (pattern,) = GitIgnoreSpec.from_lines([line]).patterns
        regex: Any = getattr(pattern, "regex", None)
        if regex is None or (regex.pattern.count(_STAR) < 2 and regex.pattern.count(".+") < 2):
            return pattern
        safe = bounded(regex.pattern)
        make: Any = type(pattern)
        return None if safe is None else make(re.compile(safe), pattern.include)
    except (ValueError, re.error, RecursionError, OverflowError):
        return None
