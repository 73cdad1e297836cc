"""Statements of many ranks are folded: the common one is said once, then who differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from tensortrail.plurals import counted
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.ranks.statements import (
    DEVICES,
    ERRORS,
    MEETINGS,
    MOVES,
    PHASES,
    Statement,
)
from tensortrail.tracer.reading.sentences import size

Amounts = tuple[float, ...]
MOST_DIFFERING = 3
"""So many groups of ranks that differ are named; of more, the span and its ends."""
FAR = 2
"""A rank is far from the others with so many times their median, in what differs anyway."""


@dataclass(frozen=True, slots=True)
class Folded:
    """What all ranks say of one subject."""

    section: str
    subject: str
    groups: tuple[tuple[Amounts, tuple[str, ...]], ...]
    """Amounts and the ranks that have these; most ranks first."""
    missing: tuple[str, ...]
    """Ranks that say nothing of it."""

    @property
    def ranks(self) -> list[str]:
        return [rank for _, ranks in self.groups for rank in ranks]

    @property
    def weight(self) -> float:
        return sum(amounts[0] * len(ranks) for amounts, ranks in self.groups)

    @property
    def sentence(self) -> str:
        """`ranks 0-1023: 2.1 GB in 14 moves, cuda -> cpu at train.py:40; rank 317 differs: ...`"""
        told = f"{named(self.ranks)}{' only' if self.missing else ''}: "
        amounts, notes = self._amounts()
        return "; ".join([f"{told}{amounts}, {self.subject}", *notes])

    def _amounts(self) -> tuple[str, Iterable[str]]:
        say = SAID[self.section]
        (common, _), *others = self.groups
        if self.section == PHASES or len(others) > MOST_DIFFERING:
            return self._span(say), self._far(say)
        return say(common), (f"{_differ(ranks)}: {say(amounts)}" for amounts, ranks in others)

    def _span(self, say: Callable[[Amounts], str]) -> str:
        columns = list(zip(*(amounts for amounts, _ in self.groups), strict=True))
        least, most = say(tuple(map(min, columns))), say(tuple(map(max, columns)))
        return least if least == most else f"{least} to {most}"

    def _far(self, say: Callable[[Amounts], str]) -> Iterator[str]:
        middle = median(amounts[0] for amounts, ranks in self.groups for _ in ranks)
        far = [each for each in self.groups if _is_far(each[0][0], middle)]
        for amounts, ranks in far[:MOST_DIFFERING]:
            yield f"{_differ(ranks)}: {say(amounts)}"
        if rest := far[MOST_DIFFERING:]:
            yield f"{named(rank for _, ranks in rest for rank in ranks)} differ"


def _is_far(amount: float, middle: float) -> bool:
    return amount > FAR * middle or amount * FAR < middle


def _differ(ranks: Sequence[str]) -> str:
    return f"{named(ranks)} {'differs' if len(ranks) == 1 else 'differ'}"


def _moved(amounts: Amounts) -> str:
    return f"{size(int(amounts[0]))} in {counted(int(amounts[1]), 'move')}"


def _lie(amounts: Amounts) -> str:
    nbytes, storages, most = amounts
    return f"{size(int(nbytes))} in {counted(int(storages), 'storage')}, at most {size(int(most))}"


SAID: dict[str, Callable[[Amounts], str]] = {
    MOVES: _moved,
    DEVICES: _lie,
    PHASES: lambda amounts: f"{amounts[0]:.3f} s",
    MEETINGS: lambda amounts: counted(int(amounts[0]), "time"),
    ERRORS: lambda amounts: counted(int(amounts[0]), "time"),
}


@dataclass
class Folding:
    """Takes the ranks one after the other; grows with what is said, not with who says it."""

    _said: dict[tuple[str, str], dict[Amounts, list[str]]] = field(default_factory=dict)
    _ranks: list[str] = field(default_factory=list)

    def add(self, rank: str, statements: Iterable[Statement]) -> None:
        self._ranks.append(rank)
        for each in statements:
            groups = self._said.setdefault((each.section, each.subject), {})
            groups.setdefault(each.amounts, []).append(rank)

    def folded(self, section: str) -> list[Folded]:
        """Most bytes, seconds or times first."""
        found = [
            self._folded(section, subject, groups)
            for (of, subject), groups in self._said.items()
            if of == section
        ]
        return sorted(found, key=lambda each: -each.weight)

    def _folded(self, section: str, subject: str, groups: dict[Amounts, list[str]]) -> Folded:
        largest = sorted(groups.items(), key=lambda each: -len(each[1]))
        those = {rank for _, ranks in largest for rank in ranks}
        missing = tuple(each for each in self._ranks if each not in those)
        told = tuple((amounts, tuple(ranks)) for amounts, ranks in largest)
        return Folded(section, subject, told, missing)
