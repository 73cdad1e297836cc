"""What an examination of a tensor subclass says. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    HANDLED = "handled"
    WRONG_TYPE = "wrong type"
    WRONG_VALUES = "wrong or uninitialised values"
    WRONG_DEVICE = "wrong device"
    WRONG_STORAGE = "wrong storage"
    RAISES = "raises"
    NOT_APPLICABLE = "not applicable"

    @property
    def fails(self) -> bool:
        return self not in (Verdict.HANDLED, Verdict.NOT_APPLICABLE)


@dataclass(frozen=True, slots=True)
class Row:
    """One operation that a use needs, and how the class answered it."""

    use: str
    op: str
    verdict: Verdict
    told: str = ""
    """What came instead, or the exception; why it does not apply."""
    breaks: str = ""
    """What fails because of it; empty where nothing does."""
    codes: tuple[str, ...] = ()
    """Rules of the catalogue that speak of this."""

    @property
    def id(self) -> str:
        """`DCP staging: new_empty(size, device=cpu)`; `except_for` takes the whole or a part."""
        return f"{self.use}: {self.op}"


@dataclass(frozen=True, slots=True)
class Examination:
    kind: str
    """The class by its whole name."""
    about: str
    """The instance that was tried: `bfloat16 64x64 on cpu of qdata, scale`."""
    versions: str
    rows: tuple[Row, ...]

    @property
    def failing(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.verdict.fails)

    def unexcused(self, except_for: Sequence[str]) -> tuple[Row, ...]:
        return tuple(row for row in self.failing if not any(part in row.id for part in except_for))


class CannotMake(Exception):
    """No instance of the class can be had; the message says what to pass."""
