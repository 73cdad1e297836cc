"""JSON as strict readers take it: UTF-8, no key twice, no numbers that are none, in bounded
memory."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

from tensortrail.doctor.checkpoint.formats.ranges import TooMuch

MOST_MEMORY = 280_000_000
"""Bytes that the values of a text may take, by the estimate below."""
_FOR_A_CHARACTER, _FOR_A_VALUE, _FOR_A_CONTAINER = 2, 45, 90


_LARGEST = (1 << 64) - 1


class Malformed(Exception):
    """The text is no JSON; `byte` is where that shows."""

    def __init__(self, message: str, byte: int) -> None:
        super().__init__(message)
        self.byte = byte


class Duplicates(list[str]):
    """Keys that stood twice in one object."""


def read_json(data: bytes) -> tuple[Any, Duplicates]:
    """The value, and the keys of which all but the last value were lost."""
    _refuse_bombs(data)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("it is not UTF-8", error.start) from error
    twice = Duplicates()

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        kept = dict(pairs)
        if len(kept) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            twice.extend(key for key, count in counts.items() if count > 1)
        return kept

    try:
        return json.loads(text, object_pairs_hook=keep, parse_constant=_no_number), twice
    except json.JSONDecodeError as error:
        byte = len(text[: error.pos].encode())
        raise Malformed(f"it is not valid JSON: {error.msg.lower()}", byte) from error
    except RecursionError as error:
        raise Malformed("it is nested deeper than any reader follows", 0) from error
    except ValueError as error:
        raise Malformed(f"it is not valid JSON: {error}", 0) from error


def is_text(value: object) -> bool:
    """It is a string with an UTF-8 form: half a surrogate pair has none."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def whole_numbers(value: object) -> bool:
    """A list of numbers as sizes and offsets are: whole, not negative, below 2**64."""
    if not isinstance(value, list):
        return False
    for each in value:  # noqa: SIM110 - called for every tensor, and `all` takes twice the time
        if type(each) is not int or not 0 <= each <= _LARGEST:
            return False
    return True


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _refuse_bombs(data: bytes) -> None:
    containers = data.count(b"{") + data.count(b"[")
    values = data.count(b",") + data.count(b":")
    memory = len(data) * _FOR_A_CHARACTER + values * _FOR_A_VALUE + containers * _FOR_A_CONTAINER
    if memory > MOST_MEMORY:
        raise TooMuch(f"{len(data):,} bytes of JSON with {containers + values:,} values")
