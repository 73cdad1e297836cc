"""The ranks of a run are read side by side, each in memory of its own that is then given back."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tensortrail.rules import Rule, all_rules
from tensortrail.tracer.reading.rank_reading import RankReading, read_rank
from tensortrail.tracer.trail.rank_files import RankFiles, RunFiles

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

WORTH_PROCESSES = 8_000_000
"""Bytes of trail from which other processes pay."""
MOST_PROCESSES = 8
"""Each takes the memory of one rank and of the rules."""
_AT_ONCE = 4


def readings(files: RunFiles, rules: Sequence[Rule]) -> Iterator[RankReading]:
    """In order of the ranks."""
    processes = min(os.cpu_count() or 1, MOST_PROCESSES)
    if processes > 1 and sum(each.nbytes for each in files.ranks) > WORTH_PROCESSES:
        read = _in_processes(files.ranks, rules, processes)
    else:
        read = (read_rank(each, rules) for each in files.ranks)
    return (each for each in read if each is not None)


def _in_processes(
    ranks: Sequence[RankFiles], rules: Sequence[Rule], processes: int
) -> Iterator[RankReading | None]:
    from concurrent.futures.process import BrokenProcessPool

    codes = tuple(rule.code for rule in rules)
    batches = [ranks[start : start + _AT_ONCE] for start in range(0, len(ranks), _AT_ONCE)]
    ahead = 2 * processes
    taken = 0
    with _pool(processes) as pool, suppress(BrokenProcessPool):
        waiting = deque(pool.submit(_read, batch, codes) for batch in batches[:ahead])
        while waiting:
            found = waiting.popleft().result()
            taken += 1
            # No more is asked for than is taken: what is read and not taken would pile up.
            for batch in batches[taken + ahead - 1 : taken + ahead]:
                waiting.append(pool.submit(_read, batch, codes))
            yield from found
    # The system took a process away, and with it the pool: what is left is read here.
    yield from (read_rank(each, rules) for batch in batches[taken:] for each in batch)


def _pool(processes: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    fresh = get_context("spawn")  # a fork of a process with threads may hang
    return ProcessPoolExecutor(max_workers=processes, mp_context=fresh)


def _read(batch: Sequence[RankFiles], codes: tuple[str, ...]) -> list[RankReading | None]:
    """Runs in another process; rules of other packages might not survive the way there."""
    known = all_rules()
    rules = [known[code]() for code in codes if code in known]
    return [read_rank(each, rules) for each in batch]
