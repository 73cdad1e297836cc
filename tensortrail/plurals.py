"""How many of something there are, in words: `1 file`, `2 processes`."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ss') else 's'}"
