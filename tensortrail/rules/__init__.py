"""One risk, one file. Rules are discovered: put a file into the folder of its family, or into one
of the folders in it, nothing else."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from tensortrail.rules.base import Rule
from tensortrail.rules.declared import Near
from tensortrail.rules.examples import Bad, Good
from tensortrail.rules.part import Part
from tensortrail.rules.project_facts import ClassFacts, FunctionFacts, OffloadSetting
from tensortrail.rules.view import Module
from tensortrail.rules.words import TENSORS, Branch, Guard, Kind, Owner, Placement, Value

if TYPE_CHECKING:
    from tensortrail.rules.checkpoint import Checkpoint
    from tensortrail.rules.timeline import Did, Event, Storage, Timeline

__all__ = [
    "TENSORS", "Bad", "Branch", "Checkpoint", "ClassFacts", "Did", "Event", "FunctionFacts",
    "Good", "Guard", "Kind", "Module", "Near", "OffloadSetting", "Owner", "Part", "Placement",
    "Rule", "Storage", "Timeline", "Value", "all_rules",
]  # fmt: skip

_OF_RUNS = frozenset({"Did", "Event", "Storage", "Timeline"})


def __getattr__(name: str) -> Any:
    """What only rules of runs and of checkpoints name: their modules take long to import."""
    if name not in _OF_RUNS and name != "Checkpoint":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "timeline" if name in _OF_RUNS else "checkpoint"
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


ENTRY_POINT = "tensortrail.rules"


@functools.cache
def all_rules() -> dict[str, type[Rule]]:
    """Every rule by code: the house's own and those other packages add by entry point."""
    import pkgutil
    from importlib.metadata import entry_points  # it takes longer than the rules of most checks

    found: list[type[Rule]] = []
    for file in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not file.ispkg:
            found += _rules_in(importlib.import_module(file.name))
    for point in entry_points(group=ENTRY_POINT):
        loaded = point.load()
        found += [loaded] if isinstance(loaded, type) else _rules_in(loaded)
    rules: dict[str, type[Rule]] = {}
    for rule in sorted(found, key=lambda rule: rule.code):
        if rule.code in rules:
            raise ValueError(f"two rules have the code {rule.code}: {rules[rule.code]} and {rule}")
        rules[rule.code] = rule
    return rules


def _rules_in(module: object) -> list[type[Rule]]:
    return [
        thing
        for thing in vars(module).values()
        if isinstance(thing, type)
        and issubclass(thing, Rule)
        and thing is not Rule
        and thing.__module__ == getattr(module, "__name__", "")
    ]
