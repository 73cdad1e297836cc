"""The code of a rule that a mistyped one stands for."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_LIKE_DIGITS = str.maketrans("OIL", "011")


def read_as_digits(word: str) -> str:
    """`OFF1O1` is `OFF101`."""
    upper = word.upper()
    return upper[:3] + upper[3:].translate(_LIKE_DIGITS)


def code_meant(word: str, known: Collection[str]) -> str:
    """ "" where no code is like the word."""
    if (code := read_as_digits(word)) in known:
        return code
    return next(iter(get_close_matches(word.upper(), sorted(known), 1)), "")
