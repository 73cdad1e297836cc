"""Clocks of streams, and which bytes tensors share."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.rehearsal.streams.byte_ranges import region  # noqa: E402
from tensortrail.tracer.rehearsal.streams.clocks import Order, is_past  # noqa: E402


def test_who_waits_is_past_what_was_given_before() -> None:
    order = Order()
    one, two = order.queue(0), order.queue(0, 0x1000)
    early = one.time
    order.wait(two, order.mark(one))
    late = one.time
    assert is_past(two.clock, one, early)
    assert not is_past(two.clock, one, late)
    assert order.queue(0, 0x1000) is two


def test_waiting_is_handed_on() -> None:
    order = Order()
    one, two, three = (order.queue(0, stream) for stream in (0, 1, 2))
    time = one.time
    order.wait(two, order.mark(one))
    order.wait(three, order.mark(two))
    assert is_past(three.clock, one, time)


def test_what_begins_comes_after_what_the_host_waited_for() -> None:
    order = Order()
    here, there, other = order.queue(0), order.queue(1, 1), order.queue(1)
    time, elsewhere = here.time, other.time
    order.host_waits_for_all(0)
    assert order.host_is_past(here, time)
    assert not order.host_is_past(other, elsewhere)
    assert not is_past(there.clock, here, time)
    assert is_past(order.begins(there).clock, here, time)


def test_what_a_mark_knows_does_not_grow() -> None:
    order = Order()
    one, two = order.queue(0), order.queue(0, 1)
    marked = order.mark(one)
    order.wait(one, order.mark(two))
    assert marked == {one.number: 1}


X: Any = torch.zeros(8, 8)


@pytest.mark.parametrize(("one", "other", "meet"), [
    (X, X[3, 3], True), (X[:4], X[4:], False), (X[:5], X[4:], True), (X.t(), X[2], True),
    (X[:, 0], X[:, 1], False), (X[:, 0], X[:, 0], True), (X[:, 0], X[:2], True),
    (X[:, ::2], X[:, 1::2], False), (X[:, 3], X[2, :2], False), (X[:1].expand(4, 8), X[0], True),
    (X[0].expand(8, 8), X[1], False), (X.view(torch.int8)[0, :3], X[0, 1:], False),
    (X.permute(1, 0)[2:3], X[5, 2], False),
])  # fmt: skip
def test_what_surely_meets(one: Any, other: Any, meet: bool) -> None:
    assert region(one).surely_meets(region(other)) is meet
    assert region(other).surely_meets(region(one)) is meet


def test_what_covers_what() -> None:
    assert region(X).covers(region(X[:, 1]))
    assert region(X.t()).covers(region(X))
    assert region(X[:, 1]).covers(region(X[:, 1]))
    assert not region(X[:, 1]).covers(region(X[1:2, 1]))
    assert not region(X[:4]).covers(region(X[3:5]))
