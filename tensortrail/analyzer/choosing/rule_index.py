"""What is known of each rule without importing it: most files are of interest to few rules.

The index lies beside the compiled modules of the rules, and is made anew when one of them or a
package changed. Where it cannot be written, every rule is imported, as without it. A process in
which that happened while it ran writes none: its rules may be those of before."""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from importlib.util import cache_from_source
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from tensortrail.analyzer.choosing.installed import (
    OWN,
    Stamps,
    changed_since_start,
    of_files,
    own_files,
    packages,
)
from tensortrail.analyzer.choosing.triggers import Filter, filter_of
from tensortrail.files import read, replace

if TYPE_CHECKING:
    from tensortrail.rules import Rule

_FILE = "rules.index.json"
_HOUSE = "tensortrail.rules."


class Listed(NamedTuple):
    """A rule that may not be imported yet."""

    code: str
    name: str
    module: str
    attribute: str
    default: bool
    reads_code: bool
    watches_runs: bool
    examines_checkpoints: bool
    filter: Filter

    def load(self) -> type[Rule]:
        found: type[Rule] = attrgetter(self.attribute)(importlib.import_module(self.module))
        return found


@functools.cache
def listed() -> Mapping[str, Listed]:
    """Every rule by code."""
    file = os.path.join(os.path.dirname(cache_from_source(_source())), _FILE)
    known = _read(file)
    if known is None:
        from tensortrail.rules import all_rules

        known = [listed_as(rule) for rule in all_rules().values()]
        _write(file, known)
    return {each.code: each for each in known}


def listed_as(rule: type[Rule]) -> Listed:
    return Listed(
        rule.code,
        rule.name,
        rule.__module__,
        rule.__qualname__,
        rule.default,
        rule.reads_code(),
        rule.watches_runs(),
        rule.examines_checkpoints(),
        filter_of(rule),
    )


def _source() -> str:
    return os.path.join(OWN, "rules", "__init__.py")


def _key() -> Stamps:
    return [*own_files("rules", "findings.py", "analyzer"), *packages()]


def _read(file: str) -> list[Listed] | None:
    try:
        key, others, rows = json.loads(read(file))
        if key != _key() or others != of_files(path for path, *_ in others):
            return None
        return [Listed._make([*row[:-1], Filter.from_data(row[-1])]) for row in rows]
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _write(file: str, known: Iterable[Listed]) -> None:
    if sys.dont_write_bytecode:
        return
    try:
        rows: list[Any] = [[*each[:-1], each.filter.to_data()] for each in known]
        others = _of_others(known)
        stored = json.dumps([_key(), of_files(others), rows], separators=(",", ":"))
        if changed_since_start(others):
            return
        os.makedirs(os.path.dirname(file), exist_ok=True)
        replace(file, stored.encode())
    except (OSError, ValueError, TypeError):
        return  # what cannot be kept is looked up anew


def _of_others(known: Iterable[Listed]) -> list[str]:
    """Files of rules that other packages bring."""
    modules = {each.module for each in known if not each.module.startswith(_HOUSE)}
    return sorted(str(sys.modules[each].__file__) for each in modules)
