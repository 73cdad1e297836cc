"""Small objects that nobody changes, made by the hundred thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["unchanging"]

if TYPE_CHECKING:
    from dataclasses import dataclass as unchanging
else:
    from dataclasses import dataclass

    from tensortrail.findings import alike

    def unchanging(frozen: bool = True, slots: bool = True):
        """A frozen dataclass to the type checker, which sees to it that nobody changes one.

        At run time nothing guards it: with a guard, making one takes four times as long."""

        def made(cls):
            cls.__doc__ = cls.__doc__ or cls.__name__  # else the signature is written there
            return alike(dataclass(slots=slots, eq=False, repr=False)(cls))

        return made
