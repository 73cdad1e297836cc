"""What a batch holds, as a number."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.identity.content import content  # noqa: E402


class Pair(NamedTuple):
    x: Any
    y: int


class Batch:
    def __init__(self, x: Any) -> None:
        self.x = x


def batches(number: float) -> list[Any]:
    x = torch.full((2, 3), number)
    sparse = torch.eye(2).to_sparse()
    return [
        x, [x, "a"], {"x": x, "y": [1]}, Pair(x, 1), Batch(x), x.bfloat16(), x.numpy(),
        [torch.tensor(number), sparse], x.requires_grad_().t(),
    ]  # fmt: skip


def test_the_same_has_the_same_and_another_has_not() -> None:
    ones, twos = batches(1.0), batches(2.0)
    assert [*map(content, ones)] == [*map(content, batches(1.0))]
    assert all(content(one) != content(two) for one, two in zip(ones, twos, strict=True))


def test_nothing_that_can_be_seen_is_zero() -> None:
    assert [*map(content, [None, [], object(), torch.ones(0)])] == [0, 0, 0, 0]


def test_what_holds_itself_ends() -> None:
    own: list[Any] = [1]
    own.append(own)
    assert content(own)
