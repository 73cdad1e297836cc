"""Needs of a file are paths. One whose whole text counts is named a second time, so that it goes
wherever needs are handed on: whoever needs what rests on it needs all of it too."""

from __future__ import annotations

_ALL_OF = "\0"
"""No path has it."""


def all_of(path: str) -> str:
    return _ALL_OF + path


def is_all_of(need: str) -> bool:
    return need.startswith(_ALL_OF)


def file_of(need: str) -> str:
    return need.removeprefix(_ALL_OF)
