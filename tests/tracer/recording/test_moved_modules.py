"""Modules that torch moves in its own way are recorded by a short way, which tells the same."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.watching import moved_parameters


class Net(nn.Module):  # type: ignore[misc]
    """Nested, with tied weights, a buffer, a weight that is kept elsewhere too, and gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.head = nn.Linear(4, 4, bias=False)
        self.head.weight = self.inner[0].weight
        self.register_buffer("mask", torch.ones(4))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)
        self.kept = self.frozen.data

    def trained(self) -> Net:
        self.head(self.inner(torch.ones(2, 4))).sum().backward()
        return self


def to_meta(net: nn.Module) -> None:
    net.to("meta")


def to_meta_at_once(net: nn.Module) -> None:
    net.to("meta", torch.float64, non_blocking=True)


def to_another_type(net: nn.Module) -> None:
    net.to(torch.float64)
    net.to(torch.float64)


def to_where_it_is(net: nn.Module) -> None:
    net.cpu()


def twice(net: nn.Module) -> None:
    net.to(torch.float16)
    net.to("meta")


WAYS = (to_meta, to_meta_at_once, to_another_type, to_where_it_is, twice)


@contextmanager
def told(folder: Path, short: bool, patch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What a recording says, filled in at its end; by the mode alone unless `short`."""
    if not short:
        patch.setattr(moved_parameters, "MOVERS", {})
    running = begin(folder)
    said: list[Any] = []
    try:
        yield said
    finally:
        running.stop()
        patch.undo()
    assert not running.trouble
    timeline = open_run(folder)
    # The short way notes that a parameter took the bytes before the old ones are gone.
    said += [_what(each) for each in timeline.events() if each.did is not Did.FREE]
    said += [_what(each) for each in timeline.events(Did.FREE)]
    said += [timeline.name(each.storage) for each in timeline.events(Did.MOVE) if each.storage]


def _what(event: Event) -> Any:
    storages = [
        each and (each.number, each.device, each.nbytes, each.dtype, each.shape)
        for each in (event.storage, event.other)
    ]
    line = event.site and event.site.line
    return event.did, *storages, event.op, event.phase, line, dict(event.facts)


@pytest.mark.parametrize("move", WAYS)
@pytest.mark.parametrize("trained", [False, True])
def test_it_tells_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move: Callable[[Any], None], trained: bool
) -> None:
    said: list[list[Any]] = []
    for short in (False, True):
        net = Net().trained() if trained else Net()
        gc.collect()
        with told(tmp_path / str(short), short, monkeypatch) as events:
            move(net)
        said.append(events)
    assert len(said[0]) > len(list(net.parameters())) or move is to_where_it_is
    assert said[0] == said[1]


def test_the_mode_is_off_meanwhile_and_on_afterwards(tmp_path: Path) -> None:
    running = begin(tmp_path)
    try:
        net, seen = Net(), []
        compatible = torch._has_compatible_shallow_copy_type
        depth = torch._C._len_torch_function_stack

        def looking(*args: Any) -> Any:
            seen.append(depth())
            return compatible(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "_has_compatible_shallow_copy_type", looking)
            net.to(torch.float64)
        assert set(seen) == {0}
        assert depth() == 1
    finally:
        running.stop()


class Tagged(torch.Tensor):  # type: ignore[misc]
    """A tensor of the user's own class."""


class Odd(nn.Linear):  # type: ignore[misc]
    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.scale = torch.ones(4).to("meta")
        return super()._apply(fn, recurse)


def test_what_is_not_torch_s_own_is_left_to_the_mode(tmp_path: Path) -> None:
    tagged = nn.Linear(4, 4)
    tagged.register_buffer("tag", torch.ones(5).as_subclass(Tagged))
    running = begin(tmp_path)
    try:
        nn.Sequential(Odd(2, 2)).to(torch.float64)
        tagged.to("meta")
    finally:
        running.stop()
    moves = open_run(tmp_path).events(Did.MOVE)
    shapes = [each.storage.shape for each in moves if each.storage is not None]
    assert shapes == [(4,), (4, 4), (4,), (5,)]


def test_a_move_that_fails_halfway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[list[Any]] = []
    for short in (False, True):
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 3, device="meta"))
        refused = pytest.raises(NotImplementedError, match="to_empty")
        with told(tmp_path / str(short), short, monkeypatch) as events, refused:
            net.to("cpu", torch.float64)
        said.append(events)
        copied = [each for each in events if each[0] is Did.COPY]
        (error,) = (each for each in events if each[0] is Did.ERROR)
        assert len(copied) == 2
        assert error[-1]["operands"][0]["shape"] == (3, 3)
    assert said[0] == said[1]
