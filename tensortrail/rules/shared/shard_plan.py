"""How a state dict is cut into files, and the limit that keeps groups of weights together.

The cut is that of `huggingface_hub.split_torch_state_dict_into_shards`: in the order of the keys,
a new file where the next weight would pass the limit; a weight above the limit has its own file
and interrupts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MOST_STEPS = 3_000_000
"""Weights looked at, over all limits tried: about a second."""


def smallest_limit(
    sizes: Mapping[str, int], groups: Iterable[Sequence[str]], above: int = 0
) -> tuple[int, bool]:
    """The smallest limit above `above` with which no group is cut, and whether it is known to be.

    More is not always better: a larger limit moves every cut. So the limits are tried at which
    the cuts change that come before a group is cut; with very many of them, each twice the last."""
    groups_of: dict[str, list[int]] = {}
    # The members of a group that is not cut lie in one file, which the limit must allow.
    limit = above + 1
    for place, group in enumerate(groups):
        if len(group) > 1:
            limit = max(limit, sum(sizes[name] for name in group))
            for name in group:
                groups_of.setdefault(name, []).append(place)
    total, steps = sum(sizes.values()), 0
    while limit < total:
        looked_at, larger = _first_cut(sizes, groups_of, limit)
        if not larger:
            return limit, steps <= MOST_STEPS
        steps += looked_at
        limit = larger if steps <= MOST_STEPS else limit * 2
    return max(total, above + 1), steps <= MOST_STEPS


def _first_cut(
    sizes: Mapping[str, int], groups_of: Mapping[str, Sequence[int]], limit: int
) -> tuple[int, int]:
    """How many weights come before the first group that is cut, and the next limit that changes
    anything among them; 0 if none is cut."""
    file_of: dict[int, int] = {}
    number = filled = 0
    larger = sum(sizes.values())
    for place, (name, size) in enumerate(sizes.items()):
        if size > limit:
            larger = min(larger, size)
            continue
        if filled + size > limit:
            larger = min(larger, filled + size)
            number, filled = number + 1, 0
        filled += size
        for group in groups_of.get(name, ()):
            if file_of.setdefault(group, number) != number:
                return place, larger
    return len(sizes), 0
