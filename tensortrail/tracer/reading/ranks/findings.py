"""Findings of all ranks become one list: what several ranks have at one line is one finding."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tensortrail.findings import Finding
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.timeline import RunTimeline

_NAMES = re.compile(r"`([\w.]+)`")
MOST_NAMES = 3


@dataclass
class RankFindings:
    """Takes the ranks one after the other, and keeps of each finding the first and its ranks."""

    _together: dict[tuple[str, str, int, int], tuple[Finding, list[str]]] = field(
        default_factory=dict
    )
    _ranks: list[str] = field(default_factory=list)
    _places: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    """By the name of a tensor and its device: the ranks that have it there."""

    def add(
        self, label: str, is_rank: bool, found: Sequence[Finding], devices: Mapping[str, str]
    ) -> None:
        if is_rank:
            self._ranks.append(label)
        turns: dict[tuple[str, str, int], int] = defaultdict(int)
        for each in found:
            place = (each.code, each.site.file, each.site.line)
            self._together.setdefault((*place, turns[place]), (each, []))[1].append(label)
            turns[place] += 1
        for name, device in devices.items():
            self._places.setdefault(name, {}).setdefault(device, []).append(label)

    def merged(self) -> list[Finding]:
        found = (self._of_ranks(first, those) for first, those in self._together.values())
        return sorted(found, key=lambda each: each.sort_key)

    def _of_ranks(self, first: Finding, those: Sequence[str]) -> Finding:
        told = named(those)
        evidence = {**first.evidence, "process": first.evidence.get("process", told)}
        if len(those) > 1:
            evidence["process"] = told
        message = first.message
        have_it = set(those)
        others = [rank for rank in self._ranks if rank not in have_it]
        if others and len(others) < len(self._ranks):
            message = f"{message}, on {told} of {len(self._ranks)} ranks"
            if elsewhere := ", ".join(self._elsewhere(first, those[0], set(others))):
                evidence["elsewhere"] = elsewhere
        return dataclasses.replace(first, message=message, evidence=evidence)

    def _elsewhere(self, finding: Finding, own: str, others: set[str]) -> Iterator[str]:
        """Where the other ranks have the tensors that the finding names."""
        names = dict.fromkeys(_NAMES.findall(finding.message))
        for name in [each for each in names if each in self._places][:MOST_NAMES]:
            there = self._places[name]
            here = next((device for device, ranks in there.items() if own in ranks), None)
            for device, ranks in there.items():
                those = [rank for rank in ranks if rank in others]
                if here is not None and those and kind(device) != kind(here):
                    yield f"`{name}` is on {device} in {named(those)}"


def devices(rank: RunTimeline) -> dict[str, str]:
    """Where each named tensor was last."""
    found: dict[str, str] = {}
    for process in rank.processes:
        for number in sorted(process.part.names):
            storage = process.storage(number)
            if storage is not None:
                found[rank.name(storage)] = storage.device
    return found


def kind(device: str) -> str:
    """Each rank has a device of its own: its kind counts, not its number."""
    return device.partition(":")[0]
