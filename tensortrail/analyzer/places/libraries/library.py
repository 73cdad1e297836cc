"""What is known of library functions: the lists of `library_names`."""

from __future__ import annotations

from functools import cache

from tensortrail.analyzer.places.libraries.library_names import NAMES


@cache
def names(section: str, key: str) -> frozenset[str]:
    return frozenset(NAMES[section][key].split())


@cache
def factories() -> frozenset[str]:
    """Functions that make a tensor on the default device unless they are given one."""
    return frozenset().union(*(names("fresh", key) for key in NAMES["fresh"]))
