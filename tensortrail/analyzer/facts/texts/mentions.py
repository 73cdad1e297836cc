"""What a text means by a name: its own, that of another file, or only the same word."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from tensortrail.patterns import pattern

_STAR = pattern(rb"\bimport[ \t]*\*")
_LIST = pattern(rb"[\s\w,]*")
_FROM = pattern(
    rb"^[ \t>]*from[ \t]+([\w.]+)[ \t]+import\b[ \t]*(\([^)]*\)|(?:[^\n\\]|\\\n)*)", re.M
)


def is_meant(text: bytes, name: str) -> bool:
    """Code has the name of something of another file: it imports it, or reads it from a module, or
    writes it in quotes."""
    raw = name.encode()
    if raw not in text:
        return False
    if any(b"#" not in _before(text, each.start()) for each in _importing(name).finditer(text)):
        return True
    star = _STAR.search(text) is not None
    return any(
        star or _points_out(before) or _is_listed(before, text[at + len(raw) :][:1])
        for at, before in mentions(text, name)
    )


def _before(text: bytes, at: int) -> bytes:
    """What is before it on its line."""
    return text[text.rfind(b"\n", 0, at) + 1 : at]


def _points_out(before: bytes) -> bool:
    if before.endswith(b"."):
        return not before.endswith(b"self.")
    return b'"' in before or b"'" in before or b">>>" in before


def _is_listed(before: bytes, after: bytes) -> bool:
    """As on a line of a long import."""
    return after in (b",", b")", b"\n") and _LIST.fullmatch(before) is not None


def mentions(text: bytes, name: str) -> Iterator[tuple[int, bytes]]:
    """Where code has the word, and what is before it on its line: comments and definitions are
    none."""
    for match in _word(name).finditer(text):
        before = _before(text, match.start())
        if b"#" not in before and before.split()[-1:] not in ([b"def"], [b"class"]):
            yield match.start(), before


def is_named(text: bytes, name: str, of_python: bool = True) -> bool:
    """The text has the word, and in code not only in comments."""
    for match in re.finditer(rb"\b%s\b" % re.escape(name.encode()), text):
        before = _before(text, match.start())
        if not (of_python and b"#" in before):
            return True
    return False


def attributes(text: bytes, name: str, bare: bool) -> Iterator[int]:
    """Where code reads an attribute of that name, or has the name in quotes; with `bare`, also
    where it has the word."""
    for at, before in mentions(text, name):
        if bare or before.endswith(b".") or b'"' in before or b"'" in before:
            yield at


def uses_after_import(text: bytes, name: str) -> Iterator[int]:
    spans = [each.span() for each in _FROM.finditer(text)]
    for at, _ in mentions(text, name):
        if not any(start <= at < end for start, end in spans):
            yield at


def may_mean(
    paths: Mapping[str, bytes], user: str, name: str, own: str, names: frozenset[str]
) -> bool:
    """What the user means by the name may be that of `own`; `names` are those of all files and
    folders."""
    text, word = paths[user], _word(name)
    sources = [each[1].decode() for each in _FROM.finditer(text) if word.search(each[2])]
    if not sources:
        stem = stem_of(own).encode()
        return not defines(text, name) or re.search(rb"\b%s\b" % re.escape(stem), text) is not None
    return any(_may_be(paths, user, each, name, own, names) for each in sources)


def _may_be(
    paths: Mapping[str, bytes],
    user: str,
    source: str,
    name: str,
    own: str,
    names: frozenset[str],
) -> bool:
    place = source.lstrip(".")
    dots = len(source) - len(place)
    if not place:
        return True
    parts = place.split(".")
    if dots:
        folder = user
        for _ in range(dots):
            folder = os.path.dirname(folder)
        found = [each for each in _files(os.path.join(folder, *parts)) if each in paths]
    else:
        ends = tuple(os.sep + each for each in _files(os.path.join(*parts)))
        found = [each for each in paths if (os.sep + each).endswith(ends)]
    if found:
        return any(each == own or not defines(paths[each], name) for each in found)
    return not names.isdisjoint(parts)


def _files(place: str) -> tuple[str, str]:
    return place + ".py", os.path.join(place, "__init__.py")


def defines(text: bytes, name: str) -> bool:
    """At the top of the file."""
    return re.search(rb"^(?:async )?(?:def|class) %s\b" % name.encode(), text, re.M) is not None


def stem_of(path: str) -> str:
    """The name by which code speaks of a file."""
    return os.path.splitext(os.path.basename(path))[0]


@lru_cache(1000)
def _word(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"\b%s\b" % re.escape(name.encode()))


@lru_cache(1000)
def _importing(name: str) -> re.Pattern[bytes]:
    raw = re.escape(name.encode())
    return re.compile(rb"\bimport\b(?:[ \t]*\([^)]*?|(?:[^\n\\#(]|\\\n)*?)\b%s\b" % raw)
