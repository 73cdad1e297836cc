"""How a state dict is cut into files, and the limit that keeps groups of weights together.

The cut is that of `huggingface_hub.split_torch_state_dict_into_shards`: in the order of the keys,
a new file where the next weight would pass the limit; a weight above the limit has its own file
and interrupts nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

MOST_LIMITS = 500


def smallest_limit(
    sizes: Mapping[str, int], groups: Iterable[Sequence[str]], above: int = 0
) -> int:
    """The smallest limit above `above` with which no group is cut.

    More is not always better: a larger limit moves every cut. So the limits at which the cuts
    change are tried one after the other; with very many of them, each twice the last."""
    groups = [group for group in groups if len(group) > 1]
    # Members above the limit are in files of their own.
    limit = max([above + 1, *(sum(sizes[name] for name in group) for group in groups)])
    total = sum(sizes.values())
    tried = 0
    while limit < total:
        files, larger = _cut(sizes, limit)
        if all(len({files[name] for name in group}) == 1 for group in groups):
            return limit
        tried += 1
        limit = larger if tried < MOST_LIMITS else limit * 2
    return max(total, above + 1)


def _cut(sizes: Mapping[str, int], limit: int) -> tuple[dict[str, int], int]:
    """The number of each weight's file, and the next limit that cuts in another way."""
    files: dict[str, int] = {}
    alone, number, filled = -1, 0, 0
    larger = sum(sizes.values())
    for name, size in sizes.items():
        if size > limit:
            files[name], alone = alone, alone - 1
            larger = min(larger, size)
            continue
        if filled + size > limit:
            larger = min(larger, filled + size)
            number, filled = number + 1, 0
        files[name] = number
        filled += size
    return files, larger
