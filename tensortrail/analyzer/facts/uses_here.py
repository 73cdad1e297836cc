"""Whether a file uses what is defined at its top: by something that is used itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tensortrail.analyzer.facts.uses import is_named
from tensortrail.analyzer.reading.pieces import pieces_of

_DEFINED = re.compile(rb"^(?:async[ \t]+def|def|(class))[ \t]+(\w+)", re.MULTILINE)
_DECORATED = re.compile(rb"^@", re.MULTILINE)
_AS_SCRIPT = re.compile(rb"^if[ \t(]+__name__\b", re.MULTILINE)


class _Part(NamedTuple):
    """A top-level statement: the name of what it defines, "" for any other."""

    text: bytes
    name: str
    is_class: bool


def is_used_here(data: bytes, name: str, elsewhere: Callable[[str], bool]) -> bool:
    """A statement at the top of the file names it, or something that another file names, or that
    is used in this way itself."""
    parts = [_part(each) for each in pieces_of(data)]
    todo, seen = [name], {name}
    while todo:
        wanted = todo.pop()
        for part in _naming(parts, wanted):
            if _is_a_use(parts, part, wanted, elsewhere):
                return True
            if part.name and part.name not in seen:
                seen.add(part.name)
                todo.append(part.name)
    return False


def _naming(parts: list[_Part], name: str) -> Iterator[_Part]:
    return (each for each in parts if each.name != name and is_named(each.text, name))


def _is_a_use(
    parts: list[_Part], part: _Part, wanted: str, elsewhere: Callable[[str], bool]
) -> bool:
    if part.name:
        return bool(_DECORATED.search(part.text)) or elsewhere(part.name)
    return not (_AS_SCRIPT.search(part.text) and _is_of_a_library(parts, wanted, elsewhere))


def _is_of_a_library(parts: list[_Part], wanted: str, elsewhere: Callable[[str], bool]) -> bool:
    """A class that is tried out where the file is run as a script, though other files take other
    classes from it."""
    classes = [each.name for each in parts if each.is_class]
    return wanted in classes and any(each != wanted and elsewhere(each) for each in classes)


def _part(text: bytes) -> _Part:
    found = _DEFINED.search(text)
    if found is None:
        return _Part(text, "", False)
    return _Part(text, found.group(2).decode(), bool(found.group(1)))
