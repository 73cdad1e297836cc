"""The plan against huggingface_hub's own cut, on every limit there is."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from tensortrail.rules.shared.shard_plan import (
    Limit,
    ShardPlan,
    in_bytes,
    largest_limit,
    shard_plan,
    smallest_limit,
)

hub = pytest.importorskip("huggingface_hub")
torch = pytest.importorskip("torch")


def _cut(sizes: Mapping[str, int], limit: int) -> Mapping[str, str]:
    weights = {
        name: torch.empty(size, dtype=torch.uint8, device="meta") for name, size in sizes.items()
    }
    split = hub.split_torch_state_dict_into_shards(weights, max_shard_size=limit)
    return dict(split.tensor_to_filename)


def _is_whole(sizes: Mapping[str, int], groups: list[list[str]], limit: int) -> bool:
    files = _cut(sizes, limit)
    return all(len({files[name] for name in group}) == 1 for group in groups)


def _planned(sizes: Mapping[str, int], groups: list[list[str]], asked: int) -> ShardPlan:
    named = {str(number): group for number, group in enumerate(groups)}
    return shard_plan(sizes, named, asked, lambda limit: _cut(sizes, limit))


@pytest.mark.parametrize("seed", range(15))
def test_the_nearest_limits_are_those_of_all_there_are(seed: int) -> None:
    draw = random.Random(seed)
    sizes = {f"w{n}": draw.randint(1, 12) for n in range(draw.randint(2, 9))}
    names, total = list(sizes), sum(sizes.values())
    groups = [draw.sample(names, min(len(names), draw.randint(1, 3))) for _ in range(2)]
    whole = [limit for limit in range(1, total + 1) if _is_whole(sizes, groups, limit)]
    for asked in range(1, total + 1):
        plan = _planned(sizes, groups, asked)
        assert bool(plan.cut) is (asked not in whole)
        if plan.cut:
            below = max((limit for limit in whole if limit < asked), default=None)
            above = min(limit for limit in whole if limit > asked)
            assert (plan.below.nbytes if plan.below else None) == below
            assert plan.above is not None
            assert plan.above.nbytes == above
            assert plan.above.files == len(set(_cut(sizes, above).values()))


def test_a_larger_limit_can_cut_what_a_smaller_one_does_not() -> None:
    sizes = {"a": 4, "b": 2, "c": 2, "d": 4}
    groups = [["b", "c"]]
    assert not _is_whole(sizes, groups, 6)
    plan = _planned(sizes, groups, 6)
    assert (plan.below, plan.above) == (Limit(5, 3), Limit(8, 2))
    assert plan.nearest == Limit(5, 3)
    assert plan.files == 2
    assert plan.cut == {"0": {name: _cut(sizes, 6)[name] for name in "bc"}}
    assert smallest_limit(sizes, groups) == 4
    assert largest_limit(sizes, groups, 3) == 0


def test_a_size_in_words() -> None:
    assert [in_bytes(each) for each in (7, "7", "300KB", "1.5GB", " 2tb ")] == [
        7, 7, 300_000, 1_500_000_000, 2_000_000_000_000,
    ]  # fmt: skip
    for wrong in ("", "KB", "3 gibibytes", "300Ki", "-"):
        with pytest.raises(ValueError, match=r".+"):
            in_bytes(wrong)


@pytest.mark.parametrize(("weights", "together"), [(3000, 3), (20_000, 8)])
def test_many_weights_take_a_bounded_number_of_steps(weights: int, together: int) -> None:
    """With very many the limits found work, and need not be the nearest."""
    draw = random.Random(0)
    sizes = {f"w{n}": draw.randint(1, 10**7) for n in range(weights)}
    names, total = list(sizes), sum(sizes.values())
    groups = [names[n : n + together] for n in range(0, weights, 30)]
    above = smallest_limit(sizes, groups, 10**9)
    assert 10**9 < above <= total
    assert _is_whole(sizes, groups, above)
    below = largest_limit(sizes, groups, 10**9)
    assert 0 <= below <= 10**9
    assert not below or _is_whole(sizes, groups, below)
