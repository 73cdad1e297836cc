"""Text from inputs, made unable to do anything: no escapes, no invisible characters, no commands.

Workflow runners read commands out of whatever a step prints: `::name::` at the start of a line,
after white space too, and `##[name]` anywhere in it.
"""

from __future__ import annotations

import re
import unicodedata

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"
"""Invisible, but parts of words and of emoji; they change nothing around them."""
_COMMAND = "##["
_AT_START = "::"
_LINE_END = re.compile(r"\s*[\r\n]\s*")


def inert(text: str, keep: str = "") -> str:
    """The text with every unseen character outside `keep` spelled out: `\\x1b`, `\\u202e`."""
    if _AT_START in text and text.lstrip().startswith(_AT_START):
        text = text.replace(":", "\\x3a", 1)
    if text.isascii() and text.isprintable() and _COMMAND not in text:
        return text
    return "".join(spelled(text, keep))


def headline(text: str) -> str:
    """The text as one line: source that goes over several lines is joined by spaces."""
    return inert(_LINE_END.sub(" ", text.strip()))


def spelled(text: str, keep: str = "") -> list[str]:
    """One piece for each character, for text that follows something else in its line."""
    pieces = [each if each in keep else _spelled(each) for each in text]
    found = text.find(_COMMAND)
    while found >= 0:
        pieces[found + 1] = "\\x23"
        found = text.find(_COMMAND, found + 1)
    return pieces


def inert_path(path: str) -> str:
    """A path that may begin a line."""
    if path.lstrip().startswith(_AT_START):
        return f"./{''.join(spelled(path))}"
    return inert(path)


def inert_json(text: str) -> str:
    """The same JSON: a `#` stands only inside strings, where JSON has another way to write it."""
    return text.replace(_COMMAND, "#\\u0023[")


def digest(text: str) -> str:
    """What a content security policy calls a script or style, to let in this one and no other."""
    import base64  # only pages ask
    import hashlib

    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN or character in _JOINERS:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
