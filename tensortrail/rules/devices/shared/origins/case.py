"""The operand that a way is asked about, and what a way answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from tensortrail.findings import Fix, Safety, Setting
from tensortrail.rules.shared.history import placing
from tensortrail.rules.shared.operands import Operand, called
from tensortrail.rules.timeline import Event, Storage, Timeline
from tensortrail.rules.unchanging import unchanging


@unchanging(frozen=True, slots=False)
class Origin:
    why: str
    """The end of a sentence: how the operand came to lie there."""
    fixes: tuple[Fix, ...] = ()
    settings: tuple[Setting, ...] = ()


@unchanging(frozen=True, slots=False)
class Case:
    timeline: Timeline
    event: Event
    """The operation that was given tensors on different devices."""
    odd: Operand
    devices: Sequence[str]
    """Where the other operands are."""

    @cached_property
    def placed(self) -> list[Event]:
        """What put the operand where it is, the first first."""
        if self.odd.storage is None:
            return []
        return placing(self.timeline.history(self.odd.storage, self.event))

    @property
    def storage(self) -> Storage:
        assert self.odd.storage is not None
        return self.odd.storage

    @property
    def wanted(self) -> str:
        """The device of all other operands, "" if they are on several or on meta."""
        only = self.devices[0] if len(self.devices) == 1 else ""
        return "" if only == "meta" else only

    @property
    def name(self) -> str:
        return called(self.timeline, self.odd)


def advice(text: str) -> Fix:
    """A change that a person has to make."""
    return Fix(text, Safety.DISPLAY, ())
