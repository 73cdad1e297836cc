"""A snapshot says what weights held at one moment, in a small file that needs no torch to read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortrail.tracer.audit.comparison import Comparison

FORMAT = 1


class NotASnapshot(ValueError):
    """The file holds something else. The message says what."""


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


@dataclass(frozen=True)
class Snapshot:
    name: str = ""
    marks: dict[str, Mark] = field(default_factory=dict)
    when: float = field(default_factory=time.time)
    rank: int | None = None

    def compare(self, later: Snapshot, between: Iterable[Snapshot] = ()) -> Comparison:
        """What is different in the later one. Those taken between tell what was restored."""
        from tensortrail.tracer.audit.comparison import compare

        return compare(self, later, tuple(between))

    def save(self, path: str | os.PathLike[str]) -> None:
        data = {"tensortrail snapshot": FORMAT, "name": self.name, "when": self.when}
        marks = {name: _short(mark) for name, mark in self.marks.items()}
        text = json.dumps({**data, "rank": self.rank, "marks": marks}, separators=(",", ":"))
        temporary = Path(f"{os.fspath(path)}.part")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Snapshot:
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if data["tensortrail snapshot"] != FORMAT:
                raise NotASnapshot(f"{path}: written by another version of tensortrail")
            marks = {
                str(n): Mark(**{**m, "shape": tuple(m["shape"])}) for n, m in data["marks"].items()
            }
            return cls(str(data["name"]), marks, float(data["when"]), data["rank"])
        except NotASnapshot:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise NotASnapshot(f"{path}: no snapshot of tensortrail's ({error})") from error


def _short(mark: Mark) -> dict[str, Any]:
    """Without what is as by default."""
    plain = Mark("", (), "", 0)
    needed = ("dtype", "shape", "device", "nbytes")
    return {
        key: value
        for key, value in asdict(mark).items()
        if key in needed or value != getattr(plain, key)
    }
