"""How many of something there are, in words: `1 file`, `2 processes`, `3 entries`."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {_several(noun)}"


def _several(noun: str) -> str:
    if noun.endswith(("ss", "ch")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"


def are(number: int) -> str:
    return "is" if number == 1 else "are"


def quiet_notes(number: int) -> str:
    """What to say of notes with too little evidence to be reported; "" of none."""
    if not number:
        return ""
    return f" {counted(number, 'note')} with less evidence {are(number)} left out (--notes all)."


def ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
