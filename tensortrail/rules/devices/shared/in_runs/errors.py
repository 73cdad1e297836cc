"""Exceptions about devices, told apart by their messages and by what the operands were."""

from __future__ import annotations

import re

from tensortrail.patterns import pattern
from tensortrail.rules import Event, Timeline
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.operands import Operand, operands

MIXED = pattern(
    r"same device|expected device|(two|different) devices|Devices .+ are not equal|device type"
    r"|weight type .*should be the same",
    re.IGNORECASE,
)
_MOVES = MOVES | {"type", "copy_", "pin_memory", "type_as"}


def is_move(event: Event) -> bool:
    return event.op.rpartition(".")[2] in _MOVES


def meta_operand(timeline: Timeline, event: Event) -> Operand | None:
    return next((each for each in operands(timeline, event) if each.device == "meta"), None)


def is_mixed(timeline: Timeline, event: Event) -> bool:
    return len({each.device for each in operands(timeline, event)}) > 1
