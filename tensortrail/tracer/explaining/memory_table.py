"""What filled a device when memory was refused, in words: the same in explanation and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tensortrail.rules.shared.sizes import memory
from tensortrail.tracer.reading.sentences import short

MOST = 8
IN_THREAD = "in a thread of a library"


class Row(NamedTuple):
    """Memory of one kind that one line asked for."""

    nbytes: int
    kind: str
    what: str
    where: str
    each_step: int
    keeper: str

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        more = f"{memory(self.each_step)} more each step" if self.each_step else ""
        return memory(self.nbytes), self.kind, self.what, self.where, more


def table(filled: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The rows, most bytes first; those that are not shown are together in the last one."""
    rows = [_row(each) for each in filled]
    left = rows[MOST:]
    if len(left) > 1:
        kinds = Counter(each.kind for each in left)
        rows = rows[:MOST]
        rows.append(
            Row(sum(each.nbytes for each in left), ", ".join(kinds), "",
                f"{len(left)} other lines", 0, "")
        )  # fmt: skip
    return rows


def by_kind(filled: Sequence[Mapping[str, Any]]) -> str:
    """`40.00 MiB weights, 8.00 MiB gradients`."""
    total: Counter[str] = Counter()
    for each in filled:
        total[str(each.get("kind"))] += each["bytes"]
    return ", ".join(f"{memory(nbytes)} {kind}" for kind, nbytes in total.most_common())


def _row(each: Mapping[str, Any]) -> Row:
    keeper = str(each.get("keeper") or "")
    kind = f"kept by {keeper}" if keeper else str(each.get("kind"))
    count, what = each.get("count"), str(each.get("what") or "")
    many = f"{count} x {what}" if what else f"{count} tensors"
    function = str(each.get("function") or "")
    inside = f" in {function}" if function and function != "<module>" else ""
    where = (
        f"{short(str(each['file']))}:{each.get('line')}{inside}" if each.get("file") else IN_THREAD
    )
    return Row(
        each["bytes"], kind, what if what and count == 1 else many, where, each["each_step"], keeper
    )
