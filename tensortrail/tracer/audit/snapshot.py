"""A snapshot says what weights held at one moment, in a small file that needs no torch to read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tensortrail.tracer.audit.comparison import Comparison, compare
from tensortrail.tracer.audit.marks import Mark

FORMAT = 1
"""Also of the fingerprints: those of another format cannot be compared."""


class NotASnapshot(ValueError):
    """The file holds something else. The message says what."""


@dataclass(frozen=True)
class Snapshot:
    name: str = ""
    marks: dict[str, Mark] = field(default_factory=dict)
    when: float = field(default_factory=time.time)
    rank: int | None = None

    def compare(self, later: Snapshot, between: Iterable[Snapshot] = ()) -> Comparison:
        """What is different in the later one. Those taken between tell what was restored."""
        names = (self.name or "before", later.name or "after")
        return compare(names, self.marks, later.marks, [each.marks for each in between])

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
                raise NotASnapshot(
                    f"{path}: made by another version of tensortrail: its fingerprints cannot be "
                    "compared with those of this one"
                )
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
