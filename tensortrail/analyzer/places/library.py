"""What is known of library functions, read from `library.toml`."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def _table() -> dict[str, dict[str, str]]:
    text = Path(__file__).with_name("library.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def names(section: str, key: str) -> frozenset[str]:
    return frozenset(_table()[section][key].split())


@cache
def factories() -> frozenset[str]:
    """Functions that make a tensor on the default device unless they are given one."""
    return frozenset().union(*(names("fresh", key) for key in _table()["fresh"]))
