"""Extras of the installation: which one a missing package belongs to, and how to get it."""

from __future__ import annotations

from importlib.util import find_spec

_PACKAGES = {
    "trace": ("torch", "msgpack"),
    "editor": ("pygls", "lsprotocol"),
    "export": ("pyarrow",),
}


def lacking(extra: str) -> str:
    """The first package of it that is not installed; "" if all are."""
    return next((each for each in _PACKAGES[extra] if find_spec(each) is None), "")


def install(extra: str) -> str:
    """In quotes: some shells take the brackets for a pattern."""
    return f"pip install 'tensortrail[{extra}]'"


def how_to_get(package: str) -> str:
    """ "" for what belongs to no extra."""
    extra = next((name for name, each in _PACKAGES.items() if package in each), "")
    return install(extra) if extra else ""
