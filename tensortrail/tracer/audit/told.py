"""A comparison is told worst first, with a line for what has the same cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.inert import inert_path
from tensortrail.plurals import counted
from tensortrail.tracer.audit.changes import HARMLESS, Change

MOST_NAMES = 3
ORDER = ("never restored", "without memory", "of another type", "changed", "gone", "new",
         "restored", "unchanged")  # fmt: skip


def told(names: tuple[str, str], changes: Sequence[Change]) -> Iterator[str]:
    before, after = names
    if after == before:
        after = "the next time there"
    whole = all(each.is_harmless for each in changes)
    verdict = "all hold the same values" if whole else "not all hold the same values"
    count = counted(len(changes), "tensor")
    yield inert_path(f"weights, {before} -> {after}: {count}, {verdict}")
    for word in ORDER:
        found = [each for each in changes if each.became.value == word]
        for writer in dict.fromkeys(_cause(each) for each in found):
            same = [each for each in found if _cause(each) == writer]
            yield inert_path(f"  {len(same)} {word}{writer}: {_names(same)}")
    for each in changes:
        for said in each.said:
            if each.became not in HARMLESS or said in each.troubles:
                yield inert_path(f"  {each.name}: {said}")


def _cause(change: Change) -> str:
    before, after = change.before, change.after
    if change.became.value == "of another type" and before and after:
        return f", {before.dtype} {list(before.shape)} -> {after.dtype} {list(after.shape)}"
    if change.became.value == "without memory" and after:
        return f", {after.without}"
    if change.became.value == "unchanged" or not change.writer:
        return ""
    if change.became.value == "never restored":
        return f", last written by {change.writer}"
    return f" by {change.writer}"


def _names(changes: list[Change]) -> str:
    names = [each.name for each in changes]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
