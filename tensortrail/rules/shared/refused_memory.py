"""Memory that was refused: what an allocation lacked, and what fills the device more each step."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tensortrail.rules.shared.sizes import memory
from tensortrail.rules.timeline import Event
from tensortrail.rules.unchanging import unchanging

_BYTES = r"[\d.]{1,12} (?:bytes|[KMGT]?i?B)"
_DEVICE = re.compile(
    rf"Tried to allocate (?P<asked>{_BYTES})\. GPU (?P<index>\d{{1,3}}) has a total capacity of "
    rf"(?P<total>{_BYTES}) of which (?P<free>{_BYTES}) is free"
)
_IDLE = re.compile(rf"(?P<idle>{_BYTES}) is reserved by PyTorch but unallocated")
_HOST = re.compile(r"you tried to allocate (?P<asked>\d{1,20}) bytes")
_VARIABLE = re.compile(r"PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF")
_UNITS = {"bytes": 0, "B": 0, "K": 1, "M": 2, "G": 3, "T": 4}

Row = Mapping[str, Any]
"""Memory of one kind that one line asked for, in the facts of an exception."""


@unchanging(frozen=True, slots=False)
class Shortage:
    """What an allocation lacked, as its error tells."""

    device: str
    asked: int
    free: int | None = None
    total: int = 0
    idle: int = 0
    """Reserved by the allocator in pieces, and not in use."""
    variable: str = ""
    """That sets how memory is allocated, in this release."""

    @property
    def missing(self) -> int:
        return max(0, self.asked - (self.free or 0))

    def __str__(self) -> str:
        if self.free is None:
            return f"{memory(self.asked)} on {self.device} in one piece"
        left = f"{memory(self.free)} of {memory(self.total)} is free"
        return (
            f"{memory(self.asked)} on {self.device}, where {left}: "
            f"{memory(self.missing)} is missing"
        )


@unchanging(frozen=True, slots=False)
class Growth:
    """What is more with each step."""

    each_step: int
    keeper: str
    """The list or attribute that keeps it, in words; empty if autograd's graph does."""
    file: str
    line: int
    function: str
    one_a_step: bool
    """A step adds one tensor."""
    graph: int = 0
    """The bytes of autograd's graph that are kept with it in each step."""

    def __str__(self) -> str:
        inside = f" in {self.function}" if self.function not in ("", "<module>") else ""
        where = f"{os.path.basename(self.file)}:{self.line}{inside}" if self.file else "?"
        what = self.keeper or "autograd's graph"
        along = f", and autograd's graph by {memory(self.graph)} with it" if self.graph else ""
        return f"{what} grows by {memory(self.each_step)} each step, by what {where} makes{along}"

    @property
    def change(self) -> str:
        if self.keeper:
            return f"put `.detach().cpu()` of it into {self.keeper}, or only what is needed later"
        return "detach what is kept from one step to the next: its whole graph is kept with it"


def shortage(message: str) -> Shortage | None:
    if found := _DEVICE.search(message):
        idle, variable = _IDLE.search(message), _VARIABLE.search(message)
        return Shortage(
            f"cuda:{found['index']}",
            asked=_number(found["asked"]),
            free=_number(found["free"]),
            total=_number(found["total"]),
            idle=_number(idle["idle"]) if idle else 0,
            variable=variable[0] if variable else "",
        )
    found = _HOST.search(message)
    return Shortage("cpu", int(found["asked"])) if found else None


def filled_of(event: Event) -> list[Row]:
    """The rows in the facts of an exception; a trail may hold anything in their place."""
    rows = event.facts.get("filled")
    return [
        row
        for row in (rows if isinstance(rows, (list, tuple)) else ())
        if isinstance(row, dict) and type(row.get("bytes")) is type(row.get("each_step")) is int
    ]


def growing(filled: Sequence[Row]) -> Growth | None:
    """What grows most with each step; what somebody keeps before what only a graph does."""
    found = [_growth(each) for each in filled if each["each_step"]]
    most = max(found, key=lambda each: (bool(each.keeper), each.each_step), default=None)
    if most is None or not most.keeper:
        return most
    return replace(most, graph=sum(each.each_step for each in found if not each.keeper))


def _growth(row: Row) -> Growth:
    count, line = row.get("count"), row.get("line")
    return Growth(
        each_step=row["each_step"],
        keeper=str(row.get("keeper") or ""),
        file=str(row.get("file") or ""),
        line=line if isinstance(line, int) else 0,
        function=str(row.get("function") or ""),
        one_a_step=isinstance(count, int) and row["each_step"] * count == row["bytes"],
    )


def _number(text: str) -> int:
    value, _, unit = text.partition(" ")
    power = _UNITS.get(unit, _UNITS.get(unit[:1], 0))
    return round(float(value) * float(1024**power))
