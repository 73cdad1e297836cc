"""Two snapshots are compared name by name, and fused or renamed tensors by their fingerprints."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tensortrail.tracer.audit.changes import Became, Change
from tensortrail.tracer.audit.marks import Mark
from tensortrail.tracer.audit.told import told


@dataclass(frozen=True)
class Comparison:
    names: tuple[str, str]
    changes: tuple[Change, ...]
    matched: Mapping[str, str] = field(default_factory=dict)
    """Names of the later snapshot for those of the earlier, where they are not the same."""

    @property
    def same(self) -> bool:
        """Each tensor holds the values that it held, and nothing else is to be said."""
        return all(each.is_harmless for each in self.changes)

    def of(self, *became: Became) -> list[Change]:
        return [each for each in self.changes if each.became in became]

    def __str__(self) -> str:
        return "\n".join(told(self.names, self.changes))


def compare(
    names: tuple[str, str],
    before: Mapping[str, Mark],
    after: Mapping[str, Mark],
    between: Sequence[Mapping[str, Mark]] = (),
) -> Comparison:
    matched, parts = _matched(before, after)
    changes: list[Change] = list(parts)
    done = {name for each in parts for name in (*each.name.split(" + "), _other(each))}
    taken = set(matched.values())
    for name, mark in before.items():
        if name in done:
            continue
        other = after.get(matched.get(name, name))
        if name not in matched and name in taken:
            other = None
        change = _change(name, mark, other, [each[name] for each in between if name in each])
        if name in matched:
            change = replace(change, said=(*change.said, f"called {matched[name]} there"))
        changes.append(change)
    for name, mark in after.items():
        if name not in before and name not in taken | done:
            changes.append(Change(name, Became.NEW, None, mark, _unfinite(None, mark)))
    parted = _parted(before, after, matched)
    changes = [replace(e, said=(*e.said, *parted.get(e.name, ()))) for e in changes]
    return Comparison(names, tuple(changes), matched)


def _change(name: str, before: Mark, after: Mark | None, between: Sequence[Mark]) -> Change:
    if after is None:
        return Change(name, Became.GONE, before)
    return Change(name, _became(before, after, between), before, after, _unfinite(before, after))


def _became(before: Mark, after: Mark, between: Sequence[Mark]) -> Became:
    lost = [each for each in between if not each.same(before)]
    if before.same(after):
        written = after.turn > before.turn or bool(lost)
        return Became.RESTORED if written and not after.without else Became.UNCHANGED
    if after.without:
        return Became.FREED
    if before.dtype != after.dtype or before.shape != after.shape:
        return Became.RETYPED
    if any(each.without and after.turn <= each.turn for each in lost):
        return Became.NEVER_RESTORED
    return Became.CHANGED


def _unfinite(before: Mark | None, after: Mark) -> tuple[str, ...]:
    was = before.unfinite if before is not None else 0
    if after.unfinite > max(was, 0):
        return (f"{after.unfinite} values are NaN or infinite",)
    return ()


def _parted(
    before: Mapping[str, Mark], after: Mapping[str, Mark], matched: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Tensors that shared their memory, and do no longer."""
    groups: defaultdict[int, list[str]] = defaultdict(list)
    for name, mark in before.items():
        if mark.memory and not mark.without and matched.get(name, name) in after:
            groups[mark.memory].append(name)
    found: dict[str, tuple[str, ...]] = {}
    for first, *others in groups.values():
        for other in others:
            one, two = (after[matched.get(name, name)] for name in (first, other))
            if before[first].same(before[other]) and one.memory != two.memory:
                found[other] = (f"shares its memory with {first} no longer",)
    return found


# --- other names, and one tensor for several ---------------------------------------------------
def _matched(
    before: Mapping[str, Mark], after: Mapping[str, Mark]
) -> tuple[dict[str, str], list[Change]]:
    """Names that only one of the two has, by what they hold where that is unique."""
    left = {name: mark for name, mark in before.items() if name not in after}
    new = {name: mark for name, mark in after.items() if name not in before}
    matched = dict(_by_values(left, new)) if left and new else {}
    if left and new and not matched:
        matched = dict(_by_ending(left, new))
    left = {name: mark for name, mark in left.items() if name not in matched}
    new = {name: mark for name, mark in new.items() if name not in set(matched.values())}
    joined = [*_joined(left, new, joined=True), *_joined(new, left, joined=False)]
    for change in joined:
        for name in change.name.split(" + "):
            left.pop(name, None)
            new.pop(name, None)
    for change in joined:
        names = change.name.split(" + ")
        matched |= {name: _other(change) for name in names if name in before}
    return matched, joined


def _other(change: Change) -> str:
    return change.said[0].rpartition(" ")[2]


def _by_values(left: Mapping[str, Mark], new: Mapping[str, Mark]) -> Iterator[tuple[str, str]]:
    ours, theirs = (_unique(each) for each in (left, new))
    for key, name in ours.items():
        if name and theirs.get(key):
            yield name, theirs[key]


def _unique(marks: Mapping[str, Mark]) -> dict[tuple[object, ...], str]:
    found: dict[tuple[object, ...], str] = {}
    for name, mark in marks.items():
        if not mark.without:
            key = (mark.dtype, mark.shape, mark.exact)
            found[key] = "" if key in found else name
    return found


def _by_ending(left: Mapping[str, Mark], new: Mapping[str, Mark]) -> Iterator[tuple[str, str]]:
    """`model.head.weight` and `net.head.weight`: all values may have changed."""
    endings: defaultdict[str, list[str]] = defaultdict(list)
    for name in new:
        endings[name.partition(".")[2]].append(name)
    for name, mark in left.items():
        (only, *more) = endings.get(name.partition(".")[2]) or [""]
        if only and not more and new[only].shape == mark.shape:
            yield name, only


def _joined(
    parts: Mapping[str, Mark], wholes: Mapping[str, Mark], joined: bool
) -> Iterator[Change]:
    """Neighbours whose sums add up to that of one tensor on the other side, as q, k and v."""
    said = "joined in" if joined else "parts of"
    by_sum = {
        (mark.dtype, mark.nbytes, mark.unit, mark.loose): name
        for name, mark in wholes.items()
        if not mark.without
    }
    for names in _alike(parts):
        for start in range(len(names)):
            together = _sums_up([parts[name] for name in names[start:]], by_sum)
            if together is not None:
                count, whole = together
                shown = " + ".join(names[start : start + count])
                mark = parts[names[start]]
                yield Change(shown, Became.UNCHANGED, mark, wholes[whole], (f"{said} {whole}",))


def _alike(marks: Mapping[str, Mark]) -> Iterable[list[str]]:
    """Weights apart from biases."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, mark in marks.items():
        if not mark.without:
            found[name.rpartition(".")[2], mark.dtype].append(name)
    return found.values()


def _sums_up(
    marks: Sequence[Mark], by_sum: Mapping[tuple[str, int, int, int], str]
) -> tuple[int, str] | None:
    """How many of them, from the first on, are one of the others."""
    nbytes = loose = 0
    for count, mark in enumerate(marks[:MOST_JOINED], 1):
        nbytes, loose = nbytes + mark.nbytes, (loose + mark.loose) % 2**64
        whole = by_sum.get((mark.dtype, nbytes, mark.unit, loose))
        if whole and count > 1:
            return count, whole
    return None


MOST_JOINED = 16
