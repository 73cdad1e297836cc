"""TOML by the parser that this Python has, and the tables that come with the package."""

from __future__ import annotations

import sys
from typing import Any


def parsed(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def own_table(package: str, name: str) -> dict[str, Any]:
    """A file beside the modules of the package."""
    from importlib.resources import files  # most commands read none

    return parsed(files(package).joinpath(name).read_text(encoding="utf-8"))
