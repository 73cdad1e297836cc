"""Text from inputs, made unable to do anything: no escapes, no invisible characters, no commands.

Workflow runners read commands out of whatever a step prints: `::name::` at the start of a line,
after white space too, and `##[name]` anywhere in it.
"""

from __future__ import annotations

import unicodedata

_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS = "\u200c\u200d"
"""Invisible, but parts of words and of emoji; they change nothing around them."""
_COMMAND = "##["


def inert(text: str, keep: str = "") -> str:
    """Every unseen character outside `keep` is spelled out: `\\x1b`, `\\u202e`."""
    if text.isascii() and text.isprintable() and _COMMAND not in text:
        return text
    return "".join(spelled(text, keep))


def spelled(text: str, keep: str = "") -> list[str]:
    """`inert`, piece by piece: one piece for each character."""
    pieces = [each if each in keep else _spelled(each) for each in text]
    found = text.find(_COMMAND)
    while found >= 0:
        pieces[found + 1] = "\\x23"
        found = text.find(_COMMAND, found + 1)
    return pieces


def inert_path(path: str) -> str:
    """A path that may begin a line."""
    shown = inert(path)
    return f"./{shown}" if shown.lstrip().startswith("::") else shown


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _UNSEEN or character in _JOINERS:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
