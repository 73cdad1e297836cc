"""What a recording tells of moves while GPUs are simulated: as without a rehearsal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.overrides import TorchFunctionMode  # noqa: E402

from tensortrail.rules.timeline import Did  # noqa: E402
from tensortrail.tracer.reading.timeline import open_run  # noqa: E402
from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tensortrail.tracer.recording.options import Options  # noqa: E402
from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tensortrail.tracer.rehearsal.operations.simulation import Simulation  # noqa: E402
from tensortrail.tracer.watching.move_watches import MOVES as WATCH  # noqa: E402

MOVES = (Did.MOVE, Did.ASKED, Did.COPY)
Told = list[tuple[str, str, Any]]


def _told(folder: Path, program: Callable[[Any], Any], rehearse: str = "cuda") -> Told:
    """Of the moves of a program that is given four numbers."""
    given = torch.ones(4)
    running = begin(folder, Options(rehearse=parse_spec(rehearse) if rehearse else None))
    try:
        program(given)
    finally:
        running.stop()
    events = open_run(folder).events(*MOVES)
    return [(event.did.value, event.op, dict(event.facts)) for event in events]


class Unseeing(TorchFunctionMode):  # type: ignore[misc]
    """As programs have for reasons of their own."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _with_a_mode(tensor: Any) -> None:
    with Unseeing():
        there = tensor.to("cuda")
        there.cuda()
        there.cpu()
        tensor.cuda(non_blocking=True)


def _without_a_mode(tensor: Any) -> None:
    there = tensor.to("cuda")
    there.cuda()
    there.cpu()
    tensor.cuda(non_blocking=True)


@pytest.mark.parametrize("rehearse", ["cuda", ""])
def test_another_type_is_not_another_device(tmp_path: Path, rehearse: str) -> None:
    assert _told(tmp_path, lambda x: x.to(torch.float32), rehearse) == []
    assert _told(tmp_path / "2", lambda x: x.to("cpu"), rehearse) == [("asked", "Tensor.to", {})]


def test_a_move_that_need_not_be_waited_for(tmp_path: Path) -> None:
    told = _told(tmp_path, lambda x: x.to("cuda", torch.float32, True))
    assert told == [("move", "Tensor.to", {"non_blocking": True})]


def test_moves_are_seen_below_a_mode_of_the_program(tmp_path: Path) -> None:
    told = _told(tmp_path / "with", _with_a_mode)
    assert told == _told(tmp_path / "without", _without_a_mode)
    assert [did for did, _, _ in told] == ["move", "asked", "move", "move"]


def test_a_mode_of_the_program_sees_what_torch_calls_it(tmp_path: Path) -> None:
    names = []

    class Names(Unseeing):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            names.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    def moves(tensor: Any) -> None:
        with Names(), Unseeing():
            tensor.to("cuda")
            tensor.cuda()

    _told(tmp_path, moves)
    assert names == ["to", "cuda"]


def _there_and_back(tensor: Any) -> None:
    tensor.to("cuda").cpu()
    tensor.cuda().to("cpu")


def test_plain_moves_take_the_short_way_of_recordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = _told(tmp_path / "long", _there_and_back)

    def unexpected(*args: Any) -> Any:
        raise AssertionError(args)

    monkeypatch.setattr(type(WATCH), "after", unexpected)
    assert _told(tmp_path / "short", _there_and_back) == long
    assert [did for did, _, _ in long] == ["move"] * 4


def test_moves_are_no_other_call_to_a_rehearsal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Any] = []
    plain = Simulation.called

    def seen(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
        called.append(func.__name__)
        return plain(self, func, args, kwargs)

    monkeypatch.setattr(Simulation, "called", seen)
    _told(tmp_path, lambda x: (x.to("cuda"), x.cuda(), x + x))
    assert [name for name in called if name in ("to", "cuda", "add")] == ["add"]


def test_storages_are_told_apart_under_a_mode_of_the_program(tmp_path: Path) -> None:
    seen: list[str] = []

    class Names(Unseeing):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    with Names():  # below the recording's: it is on while a move is told of
        told = _told(tmp_path, lambda x: x.to("meta"), "")
        seen_recorded, seen[:] = seen[:], []
    assert told == [("move", "Tensor.to", {})]
    assert seen_recorded.count("to") == 1
    assert "untyped_storage" not in seen_recorded
