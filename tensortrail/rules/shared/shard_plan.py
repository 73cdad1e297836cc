"""How a state dict is cut into files, and the limits that keep groups of weights together.

The cut is that of `huggingface_hub.split_torch_state_dict_into_shards`: in the order of the keys,
a new file where the next weight would pass the limit; a weight above the limit has its own file
and interrupts nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tensortrail.rules.unchanging import unchanging

MOST_STEPS = 3_000_000
"""Weights looked at, over all limits tried in one direction: about a second."""
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

Split = Callable[[int], Mapping[str, str]]
"""The library's own: from a limit in bytes to the file of each weight."""
Groups = Mapping[str, Sequence[str]]
"""The weights that are converted together, by the weight they become."""


class Limit(NamedTuple):
    """A `max_shard_size` with which every group lies in one file, and how many files it makes."""

    nbytes: int
    files: int


@unchanging(frozen=True, slots=False)
class ShardPlan:
    """What a limit does to groups of weights, and the nearest limits that keep all whole."""

    asked: int
    file_of: Mapping[str, str]
    cut: Mapping[str, Mapping[str, str]]
    """The groups in more than one file: the file of each weight, by what the group becomes."""
    below: Limit | None = None
    above: Limit | None = None

    @property
    def files(self) -> int:
        return len(set(self.file_of.values()))

    @property
    def nearest(self) -> Limit | None:
        found = [each for each in (self.below, self.above) if each]
        return min(found, key=lambda each: abs(each.nbytes - self.asked), default=None)


def shard_plan(sizes: Mapping[str, int], groups: Groups, asked: int, split: Split) -> ShardPlan:
    """`sizes`: of the weights in bytes, in the order in which they are cut."""
    file_of = split(asked)
    cut = cut_groups(groups, file_of)
    if not cut:
        return ShardPlan(asked, file_of, cut)
    members = groups.values()
    below = _checked(groups, split, largest_limit(sizes, members, asked))
    above = _checked(groups, split, smallest_limit(sizes, members, asked))
    return ShardPlan(asked, file_of, cut, below, above)


def cut_groups(groups: Groups, file_of: Mapping[str, str]) -> dict[str, dict[str, str]]:
    files = {
        target: {name: file_of[name] for name in names if name in file_of}
        for target, names in groups.items()
    }
    return {target: found for target, found in files.items() if len(set(found.values())) > 1}


def _checked(groups: Groups, split: Split, limit: int) -> Limit | None:
    """The library's own splitter has the last word."""
    if not limit:
        return None
    file_of = split(limit)
    if cut_groups(groups, file_of):
        return None
    return Limit(limit, len(set(file_of.values())))


def smallest_limit(
    sizes: Mapping[str, int], groups: Iterable[Sequence[str]], above: int = 0
) -> int:
    """The smallest limit above `above` with which no group is cut.

    More is not always better: a larger limit moves every cut. So the limits are tried at which
    the cuts change that come before a group is cut; with very many of them, in steps of a
    sixteenth, and the one found need not be the smallest."""
    total, steps = sum(sizes.values()), 0
    groups_of, least = _by_weight(sizes, groups)
    limit = max(least, above + 1)
    while limit < total:
        cut = _first_cut(sizes, groups_of, limit)
        if cut is None:
            return limit
        steps += cut.looked_at
        limit = cut.larger if steps <= MOST_STEPS else limit + limit // 16 + 1
    return max(total, above + 1)


def largest_limit(sizes: Mapping[str, int], groups: Iterable[Sequence[str]], at_most: int) -> int:
    """The largest limit up to `at_most` with which no group is cut, 0 if there is none; with
    very many to try, one that need not be the largest."""
    steps = 0
    groups_of, least = _by_weight(sizes, groups)
    limit = at_most
    while limit >= max(least, 1):
        cut = _first_cut(sizes, groups_of, limit)
        if cut is None:
            return limit
        steps += cut.looked_at
        limit = cut.smaller if steps <= MOST_STEPS else limit - limit // 16 - 1
    return 0


def _by_weight(
    sizes: Mapping[str, int], groups: Iterable[Sequence[str]]
) -> tuple[dict[str, list[int]], int]:
    """The groups of each weight. And the least limit: the members of a group that is not cut lie
    in one file, which the limit must allow."""
    groups_of: dict[str, list[int]] = {}
    least = 0
    for place, group in enumerate(groups):
        if len(group) > 1:
            least = max(least, sum(sizes[name] for name in group))
            for name in group:
                groups_of.setdefault(name, []).append(place)
    return groups_of, least


class _Cut(NamedTuple):
    """The first group that a limit cuts."""

    looked_at: int
    """How many weights come before it."""
    larger: int
    smaller: int
    """The next limits that change anything among them."""


def _first_cut(
    sizes: Mapping[str, int], groups_of: Mapping[str, Sequence[int]], limit: int
) -> _Cut | None:
    file_of: dict[int, int] = {}
    number = filled = fullest = 0
    larger = sum(sizes.values())
    for place, (name, size) in enumerate(sizes.items()):
        if size > limit:
            larger = min(larger, size)
            continue
        if filled + size > limit:
            larger = min(larger, filled + size)
            number, filled = number + 1, 0
        filled += size
        fullest = max(fullest, filled)
        for group in groups_of.get(name, ()):
            if file_of.setdefault(group, number) != number:
                return _Cut(place, larger, fullest - 1)
    return None


def in_bytes(limit: int | str) -> int:
    """What `max_shard_size` means; a ValueError says what is wrong with it."""
    if isinstance(limit, int):
        return limit
    number, unit = limit.strip()[:-2], limit.strip()[-2:].upper()
    if limit.strip().isdigit():
        return int(limit)
    if unit not in _UNITS:
        raise ValueError(
            f"{limit!r} is not a size: write a number of bytes, or 300KB, 5MB, 2GB, 1TB"
        )
    return int(float(number) * _UNITS[unit])
