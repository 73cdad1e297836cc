"""Which functions and classes a place of a text is in, by the indentation of the lines above."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.patterns import pattern

_HEADER = pattern(rb"\s*(?:async\s+)?(def|class)\s+(\w+)\s*(?:\(([^()]*)\))?")
_ASKED = pattern(rb"[ \t]*if[ \t]+(\w+)[ \t]*:")
_OF_NO_REGISTRY = pattern(
    rb"\s*@(?:staticmethod|classmethod|(?:contextlib\.)?contextmanager|(?:functools\.)?(?:lru_)?cache\b"
    rb"|torch\.(?:no_grad|inference_mode|jit\.|compile))"
)


class Block(NamedTuple):
    """A function or class, as its first line writes it."""

    name: str
    is_class: bool
    bases: bytes
    """What a class is called with; of a function its parameters."""
    decorated: bool


def blocks_around(text: bytes, at: int) -> Iterator[Block]:
    """From the inner ones to the outer ones; lines of a text that begin further left than code
    around them end it."""
    lines = text[: text.find(b"\n", at) if b"\n" in text[at:] else len(text)].splitlines()
    level = _indent(lines[-1]) if lines else 0
    for number in range(len(lines) - 2, -1, -1):
        line = lines[number]
        if not level:
            return
        if not line.strip() or line.lstrip()[:1] in b"#)" or _indent(line) >= level:
            continue
        level = _indent(line)
        if header := _HEADER.match(line):
            kind, name, given = header.groups()
            yield Block(name.decode(), kind == b"class", given or b"", _decorated(lines, number))


def is_switched_off(text: bytes, at: int) -> bool:
    """It stands in the `if NAME:` of a name that the file sets once, and to False."""
    level = _indent(text[text.rfind(b"\n", 0, at) + 1 :].split(b"\n", 1)[0])
    if not level:
        return False
    for line in reversed(text[: text.rfind(b"\n", 0, at) + 1].splitlines()):
        if not line.strip() or line.lstrip()[:1] in b"#)" or _indent(line) >= level:
            continue
        level = _indent(line)
        if (asked := _ASKED.match(line)) and _is_false(text, asked[1]):
            return True
        if not level:
            return False
    return False


def _is_false(text: bytes, name: bytes) -> bool:
    said = re.findall(rb"(?m)^([ \t]*)(?:[^\n#]*[ \t,.])?%s[ \t]*=(?!=)([^\n#]*)" % name, text)
    return [(indent, value.strip()) for indent, value in said] == [(b"", b"False")]


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip())


def _decorated(lines: list[bytes], number: int) -> bool:
    """By something that may hand it out."""
    for line in reversed(lines[:number]):
        if line.lstrip()[:1] not in (b"@", b")") or _indent(line) != _indent(lines[number]):
            return False
        if not _OF_NO_REGISTRY.match(line):
            return True
    return False
