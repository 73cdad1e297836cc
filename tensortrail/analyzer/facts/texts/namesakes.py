"""Functions of one name in a text, and what they take: read without parsing the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tensortrail.patterns import pattern
from tensortrail.rules.project_facts import Namesake

_LONGEST = 4_000
"""Bytes of one call."""
_PLAIN = (b"staticmethod", b"classmethod", b"no_grad()", b"inference_mode()", b"abstractmethod")
"""How decorators end that pass no argument of their own."""
_DEF = pattern(rb"[ \t]*(?:async[ \t]+)?def[ \t]+")
"""What stands before the name of a function on its line."""
_BLANKS = (b" ", b"\t")


def namesakes_in(path: str, text: bytes, name: str) -> Iterator[Namesake]:
    """Functions of that name that the text defines at its top or in classes."""
    word = name.encode()
    if b"def " + word not in text:
        return
    at, counted, line = -1, 0, 1
    while (at := text.find(word + b"(", at + 1)) >= 0:
        if text[at - 1 : at] not in _BLANKS:
            continue  # most are calls
        start = text.rfind(b"\n", 0, at) + 1
        is_defined = _DEF.fullmatch(text, start, at)
        taken = _header(text, at + len(word)) if is_defined else None
        if taken is not None:
            line += text.count(b"\n", counted, start)
            counted = start
            above = _line_above(text, start)
            plain = not above.startswith((b"@", b")")) or above.endswith(_PLAIN)
            needed = taken.needed if plain else frozenset()
            yield Namesake(path, line, taken.names, needed, taken.is_open)


def _line_above(text: bytes, end: int) -> bytes:
    """The last one before that place with something on it."""
    while end and text[end - 1 : end].isspace():
        end -= 1
    return text[text.rfind(b"\n", 0, end) + 1 : end].strip()


class _Taken(NamedTuple):
    """What a function takes: the names, those of them without a default, and whether more."""

    names: tuple[str, ...]
    needed: frozenset[str]
    is_open: bool


def _header(text: bytes, start: int) -> _Taken | None:
    """What the function takes whose parameters begin there."""
    found = map(_taken, in_parentheses(text, start))
    return next((each for each in found if each is not None), None)


@lru_cache(maxsize=4_000)
def _taken(written: bytes) -> _Taken | None:
    """Methods of one name are often written alike. None: a parenthesis in it is one of a string."""
    try:
        node = ast.parse(b"def _" + written + b": ...").body[0]
    except (SyntaxError, ValueError, MemoryError):
        return None
    return _as_taken(node.args) if isinstance(node, ast.FunctionDef) else None


def _as_taken(given: ast.arguments) -> _Taken:
    by_position = [each.arg for each in (*given.posonlyargs, *given.args)]
    needed = by_position[: len(by_position) - len(given.defaults)]
    pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    needed += [each.arg for each, default in pairs if default is None]
    names = [*by_position, *(each.arg for each in given.kwonlyargs)]
    if names[:1] in (["self"], ["cls"]):
        names = names[1:]
    is_open = given.vararg is not None or given.kwarg is not None
    return _Taken(tuple(names), frozenset(needed) & {*names}, is_open)


def in_parentheses(text: bytes, start: int) -> Iterator[bytes]:
    """From the parenthesis there to each one that may close it, as some stand in strings."""
    depth = 0
    for match in re.finditer(rb"[()]", text[start : start + _LONGEST]):
        depth += 1 if match.group() == b"(" else -1
        if not depth:
            yield text[start : start + match.end()]
