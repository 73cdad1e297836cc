"""Snapshots of several ranks are put together, or compared with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tensortrail.tracer.audit.marks import Mark
from tensortrail.tracer.audit.snapshot import Snapshot


def together(snapshots: Iterable[Snapshot], name: str = "") -> Snapshot:
    """The snapshots of several ranks as one: the sums of shards are added. `exact` is then taken
    from the sums, so that two of these can be compared however many ranks there were."""
    marks: dict[str, list[Mark]] = {}
    for snapshot in snapshots:
        for key, mark in snapshot.marks.items():
            marks.setdefault(key, []).append(mark)
    return Snapshot(name, {key: _whole(found) for key, found in marks.items()})


def _whole(found: Sequence[Mark]) -> Mark:
    first = found[0]
    if not first.shard or any(each.without for each in found):
        return first
    loose = sum(each.loose for each in found) % 2**64
    shape = tuple(int(n) for n in first.shard.partition("[")[2].partition("]")[0].split(",") if n)
    nbytes = sum(each.nbytes for each in found)
    unfinite = sum(each.unfinite for each in found) if first.unfinite >= 0 else -1
    return replace(
        first, shape=shape, nbytes=nbytes, loose=loose, exact=loose, unfinite=unfinite, shard="",
        unit=min(each.unit for each in found),
    )  # fmt: skip


def replicas(snapshots: Sequence[Snapshot]) -> list[tuple[str, list[int]]]:
    """Names of tensors that every rank has whole, and the ranks on which they are different from
    what most ranks have."""
    found = []
    for name in snapshots[0].marks if snapshots else ():
        held = [each.marks[name] for each in snapshots if name in each.marks]
        if held[0].shard or len(held) < 2:
            continue
        texts = [each.fingerprint for each in held]
        usual = max(texts, key=texts.count)
        if odd := [rank for rank, text in enumerate(texts) if text != usual]:
            found.append((name, odd))
    return found
