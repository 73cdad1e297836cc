"""The plan against huggingface_hub's own cut, on every limit there is."""

from __future__ import annotations

import random

import pytest

from tensortrail.rules.shared.shard_plan import smallest_limit

hub = pytest.importorskip("huggingface_hub")
torch = pytest.importorskip("torch")


def _is_whole(sizes: dict[str, int], groups: list[list[str]], limit: int) -> bool:
    weights = {name: torch.empty(size, dtype=torch.uint8) for name, size in sizes.items()}
    split = hub.split_torch_state_dict_into_shards(weights, max_shard_size=limit)
    files = split.tensor_to_filename
    return all(len({files[name] for name in group}) == 1 for group in groups)


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_smallest_of_all_limits(seed: int) -> None:
    draw = random.Random(seed)
    sizes = {f"w{n}": draw.randint(1, 12) for n in range(draw.randint(2, 9))}
    names = list(sizes)
    groups = [draw.sample(names, min(len(names), draw.randint(1, 3))) for _ in range(2)]
    found, known = smallest_limit(sizes, groups)
    assert known
    assert _is_whole(sizes, groups, found)
    smaller = (limit for limit in range(1, found) if _is_whole(sizes, groups, limit))
    pairs = [group for group in groups if len(group) > 1]
    assert not pairs or next(smaller, None) is None


def test_a_larger_limit_can_cut_what_a_smaller_one_does_not() -> None:
    sizes = {"a": 4, "b": 2, "c": 2, "d": 4}
    groups = [["b", "c"]]
    assert smallest_limit(sizes, groups) == (4, True)
    assert not _is_whole(sizes, groups, 6)
    assert smallest_limit(sizes, groups, above=5) == (8, True)


def test_many_weights_take_little_time() -> None:
    draw = random.Random(0)
    sizes = {f"w{n}": draw.randint(1, 10**7) for n in range(3000)}
    names = list(sizes)
    groups = [names[n : n + 3] for n in range(0, 3000, 30)]
    limit, known = smallest_limit(sizes, groups)
    assert known
    assert _is_whole(sizes, groups, limit)


def test_with_very_many_the_limit_works_but_need_not_be_the_smallest() -> None:
    draw = random.Random(0)
    sizes = {f"w{n}": draw.randint(1, 10**7) for n in range(20_000)}
    names = list(sizes)
    groups = [names[n : n + 8] for n in range(0, 20_000, 30)]
    limit, known = smallest_limit(sizes, groups)
    assert not known
    assert limit <= sum(sizes.values())
