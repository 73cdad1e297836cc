"""The ranks of a run are read side by side, each in memory of its own that is then given back."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tensortrail.rules import Rule, all_rules
from tensortrail.tracer.reading.ranks.one_rank import RankReading, read_rank
from tensortrail.tracer.trail.rank_files import RankFiles, RunFiles

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

T = TypeVar("T")
WORTH_PROCESSES = 8_000_000
"""Bytes of trail from which other processes pay."""
MOST_PROCESSES = 8
"""Each takes the memory of one rank and of the rules."""
_AT_ONCE = 4


def readings(files: RunFiles, rules: Sequence[Rule]) -> Iterator[RankReading]:
    """In order of the ranks."""
    codes = tuple(rule.code for rule in rules)
    read = side_by_side(files.ranks, partial(_read, codes))
    return (each for each in read if each is not None)


def _read(codes: tuple[str, ...], rank: RankFiles) -> RankReading | None:
    """Rules of other packages might not survive the way to another process: their codes do."""
    return read_rank(rank, rules_of(codes))


def rules_of(codes: Sequence[str]) -> list[Rule]:
    known = all_rules()
    return [known[code]() for code in codes if code in known]


def side_by_side(ranks: Sequence[RankFiles], read: Callable[[RankFiles], T]) -> Iterator[T]:
    """`read` must be known by its name to other processes."""
    processes = min(os.cpu_count() or 1, MOST_PROCESSES)
    if processes > 1 and sum(each.nbytes for each in ranks) > WORTH_PROCESSES:
        return _in_processes(ranks, read, processes)
    return map(read, ranks)


def _in_processes(
    ranks: Sequence[RankFiles], read: Callable[[RankFiles], T], processes: int
) -> Iterator[T]:
    from concurrent.futures.process import BrokenProcessPool

    batches = [ranks[start : start + _AT_ONCE] for start in range(0, len(ranks), _AT_ONCE)]
    ahead = 2 * processes
    taken = 0
    with _pool(processes) as pool, suppress(BrokenProcessPool):
        waiting = deque(pool.submit(_batch, read, batch) for batch in batches[:ahead])
        while waiting:
            found = waiting.popleft().result()
            taken += 1
            # No more is asked for than is taken: what is read and not taken would pile up.
            for batch in batches[taken + ahead - 1 : taken + ahead]:
                waiting.append(pool.submit(_batch, read, batch))
            yield from found
    # The system took a process away, and with it the pool: what is left is read here.
    yield from (read(each) for batch in batches[taken:] for each in batch)


def _pool(processes: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    fresh = get_context("spawn")  # a fork of a process with threads may hang
    return ProcessPoolExecutor(max_workers=processes, mp_context=fresh)


def _batch(read: Callable[[RankFiles], T], batch: Sequence[RankFiles]) -> list[T]:
    return [read(each) for each in batch]
