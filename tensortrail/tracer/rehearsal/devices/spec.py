"""A text like `cuda:2x24GiB` says which devices are simulated."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import dataclass

from tensortrail.tracer.events.focus import FocusError, parse_size

DEFAULT_MEMORY = 80 * 2**30
VISIBLE = "CUDA_VISIBLE_DEVICES"
MOST_DEVICES = 64
_NAMES_ONE = re.compile(r"\d+|(?:GPU|MIG)-\S+")


class SpecError(ValueError):
    """The text names no devices that could be simulated."""


@dataclass(frozen=True)
class Spec:
    count: int = 1
    memory: int = DEFAULT_MEMORY
    """Bytes each device has."""
    limited: bool = False
    """The user named the size: going over it is what is rehearsed."""
    text: str = "cuda"

    @property
    def most_number(self) -> int:
        """The highest a program may name: a machine of so many GPUs has no other. Without a
        number nobody said how many the machine has."""
        return self.count - 1 if ":" in self.text else MOST_DEVICES


def parse_spec(text: str) -> Spec:
    """`cuda`, `cuda:2`, `cuda:2x24GiB`, `cudax24GiB`. Without a number there are as many as the
    environment says, as a program would find them."""
    found = re.fullmatch(r"cuda(?::(\d+))?(?:x(.+))?", text.strip())
    if found is None:
        raise SpecError(
            f"{text!r} names no GPUs to simulate: write cuda, cuda:2 for two, or cuda:2x24GiB"
        )
    count = int(found[1]) if found[1] else _visible()
    if (found[1] and count < 1) or count > MOST_DEVICES:
        said = f"{text!r}: between 1 and {MOST_DEVICES} devices can be rehearsed"
        hint = "; the number says how many: cuda:1 simulates one, which is named cuda:0"
        raise SpecError(said if count else said + hint)
    if found[2] and re.fullmatch(r"[\d.]+\s*[kKmMgG]?", found[2]):
        raise SpecError(f"{text!r}: did you mean {_meant(text)}? A size needs its unit")
    try:
        memory = parse_size(found[2]) if found[2] else DEFAULT_MEMORY
    except FocusError as error:
        raise SpecError(f"{text!r}: {error}") from error
    return Spec(count, memory, bool(found[2]), text)


def _visible() -> int:
    """How many devices the environment lets a program see: 1 if it says nothing."""
    listed = os.environ.get(VISIBLE)
    return 1 if listed is None else named(listed, MOST_DEVICES)


def named(listed: str, most_number: int) -> int:
    """How many devices a list names. Like the driver, it is read up to the first entry that is no
    device."""
    names = [each.strip() for each in listed.split(",")]
    known = itertools.takewhile(_NAMES_ONE.fullmatch, names)
    there = itertools.takewhile(lambda name: not name.isdigit() or int(name) <= most_number, known)
    return len(list(there))


def _meant(text: str) -> str:
    """`cuda:2x24` and `cuda:2x24G` mean `cuda:2x24GiB`."""
    kept = text.strip()
    unit = "" if kept[-1].isalpha() else "G"
    return f"{kept}{unit}iB"
