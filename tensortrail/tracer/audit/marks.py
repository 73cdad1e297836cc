"""A mark says what one tensor held."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mark:
    """What one tensor held. A wrapper has one for each of its parts, as `weight/qdata`."""

    dtype: str
    shape: tuple[int, ...]
    device: str
    nbytes: int
    exact: int = 0
    loose: int = 0
    unit: int = 1
    unfinite: int = -1
    memory: int = 0
    """Tensors of one snapshot with the same number share their memory."""
    without: str = ""
    """Why there is no fingerprint: it is on meta, its memory is freed."""
    shard: str = ""
    """Which part of which shape this is, for what is spread over ranks."""
    writer: str = ""
    """Who wrote it last, if that was recorded."""
    turn: int = 0
    """Grows with each write that was recorded."""

    @property
    def fingerprint(self) -> str:
        return self.without or f"{self.exact:016x}{self.loose:016x}"

    def same(self, other: Mark) -> bool:
        """Bit for bit the same values; where they lie makes no difference."""
        mine, others = ((e.dtype, e.shape, e.fingerprint) for e in (self, other))
        return mine == others
