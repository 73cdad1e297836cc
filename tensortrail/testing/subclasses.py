"""A wrapper tensor subclass, whether it does what checkpoints, sharding and offloading need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def check_subclass(
    make: Callable[[], Any], *, except_for: Sequence[str] = (), uses: Sequence[str] = ()
) -> None:
    """The class of the tensors that `make` gives handles every operation of the uses, all uses
    without any; one AssertionError lists what it does not.

    `make` returns a new tensor at every call, best with other values. `except_for` names rows
    that may fail: whole, as the message gives them, or a part ("pin_memory"); one that matches
    no failing row is an error too, so that the list cannot outlive its reasons."""
    from tensortrail.doctor.subclass.examine import examine

    found = examine(make, uses)
    assert found.rows, f"no use is named {' or '.join(uses)}"
    failing = found.unexcused(except_for)
    idle = [part for part in except_for if not any(part in row.id for row in found.failing)]
    told = [f"{found.kind} ({found.about}; {found.versions}) fails {len(failing)} operations:"]
    for row in failing:
        codes = f" [{', '.join(row.codes)}]" if row.codes else ""
        told += [f"  {row.id}: {row.verdict.value}: {row.told}", f"      {row.breaks}{codes}"]
    if failing:
        raise AssertionError("\n".join(told))
    assert not idle, f"except_for names {', '.join(map(repr, idle))}, and nothing like it fails"
