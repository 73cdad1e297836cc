"""A focus says what of a run is recorded: `--focus device=cuda,size>=1MB,name=embed`."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensortrail.tracer.identity.storages import Entry

UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
}  # fmt: skip


class FocusError(ValueError):
    """The text of a focus cannot be understood."""


@dataclass(frozen=True)
class Focus:
    devices: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    smallest: int = 0

    def wants(self, entry: Entry, other: Entry | None) -> bool:
        if self.smallest and entry.described.nbytes < self.smallest:
            return False
        if self.devices:
            seen = {entry.device, other.device if other is not None else entry.device}
            if not any(fnmatch.fnmatch(d, want) for d in seen for want in self.devices):
                return False
        if self.names:
            name = entry.name or (other.name if other is not None else "")
            return any(fnmatch.fnmatch(name, f"*{want}*") for want in self.names)
        return True


def parse_focus(text: str) -> Focus:
    """`device=cuda*`, `name=embed`, `size>=1MB`, joined by commas; devices and names may repeat."""
    devices: list[str] = []
    names: list[str] = []
    smallest = 0
    for part in filter(None, (part.strip() for part in text.split(","))):
        if found := re.fullmatch(r"size\s*>=?\s*(.+)", part):
            smallest = parse_size(found[1])
        elif found := re.fullmatch(r"device\s*=\s*(\S+)", part):
            devices.append(found[1])
        elif found := re.fullmatch(r"name\s*=\s*(\S+)", part):
            names.append(found[1])
        else:
            raise FocusError(f"{part!r}: write device=cuda, name=embed or size>=1MB")
    return Focus(tuple(devices), tuple(names), smallest)


def parse_size(text: str) -> int:
    """`1MB`, `2.5 GiB`, `4096`: bytes."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise FocusError(f"{text!r} is not a size: write 500KB, 1MB or 2.5GiB")
    return int(float(found[1]) * unit)


def parse_steps(text: str) -> range:
    """`3` or `3-5`: which steps have every operation recorded; the empty text is none."""
    if not text:
        return range(0)
    found = re.fullmatch(r"\s*(\d+)(?:\s*-\s*(\d+))?\s*", text)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise FocusError(f"{text!r} names no steps: write 3 or 3-5")
    return range(int(found[1]), int(found[2] or found[1]) + 1)
