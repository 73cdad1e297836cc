"""The lines of a .gitignore file, matched in bounded time whatever they hold."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

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


class IgnoreFile(NamedTuple):
    path: str
    base: str
    """The folder its lines are relative to."""
    spec: GitIgnoreSpec
    lines: tuple[tuple[int, str], ...]
    """The number and text of each line that is a pattern."""

    def says(self, absolute: str, is_folder: bool) -> tuple[bool | None, str]:
        """Whether the path is ignored, None if no line is about it, and the line in words."""
        relative = os.path.relpath(absolute, self.base).replace(os.sep, "/")
        found: Any = self.spec.check_file(relative + "/" * is_folder)
        if found.include is None or found.index is None:
            return None, ""
        number, text = self.lines[found.index]
        told = f"{text!r} ({self.path}:{number}); --no-respect-gitignore checks them"
        return bool(found.include), told


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
    from pathspec import GitIgnoreSpec

    patterns, kept = [], []
    for number, line in lines:
        pattern = _pattern(line)
        if pattern is None:
            problems.append(f"{path}:{number}: this pattern cannot be used")
        elif pattern.include is not None:
            patterns.append(pattern)
            kept.append((number, line))
    return [IgnoreFile(path, base, GitIgnoreSpec(patterns), tuple(kept))]


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
