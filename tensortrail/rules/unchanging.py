"""Small objects that nobody changes, made by the hundred thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["unchanging"]

if TYPE_CHECKING:
    from dataclasses import dataclass as unchanging
else:
    from dataclasses import dataclass

    def unchanging(frozen: bool, slots: bool):
        """A frozen dataclass to the type checker, which sees to it that nobody changes one.

        At run time nothing guards it: with a guard, making one takes four times as long."""
        return dataclass(slots=slots, unsafe_hash=frozen)
