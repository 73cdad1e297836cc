"""A move that goes past torch's modes is told, and fails, as one that goes through them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.reading.timeline import open_run  # noqa: E402
from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tensortrail.tracer.recording.options import Options  # noqa: E402
from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tensortrail.tracer.rehearsal.operations import short_moves  # noqa: E402
from tensortrail.tracer.rehearsal.operations.ask_mode import AskMode  # noqa: E402


def _there_and_back() -> list[Any]:
    given = torch.arange(6.0).view(2, 3)
    there = given.to("cuda")
    again = there.to("cuda:0")
    assert again is there
    return [there, there.to("cuda:1"), there.to("cpu"), given.t().to(torch.device("cuda", 1))]


def _of_a_model() -> list[Any]:
    model = torch.nn.Linear(2, 2)
    model.to("cuda")
    with torch.no_grad():
        return [model.weight.to("cpu"), model.weight.to("cuda:1"), model.bias.to("cuda")]


def _in_a_loop() -> list[Any]:
    ones = torch.ones(4)
    return [ones.to("cuda") for _ in range(3)] + [ones[:n].to("cuda") for n in range(3)]


def _with_gradients() -> list[Any]:
    weight = torch.ones(3, requires_grad=True)
    moved = weight.to("cuda")
    moved.sum().backward()
    return [moved.detach(), weight.grad]


def _too_large() -> list[Any]:
    with contextlib.suppress(torch.OutOfMemoryError):
        torch.ones(1 << 20).to("cuda")
    return []


def _no_such_device() -> list[Any]:
    with contextlib.suppress(RuntimeError):
        torch.ones(1).to("cuda:7")
    return []


PROGRAMS = (
    _there_and_back, _of_a_model, _in_a_loop, _with_gradients, _too_large, _no_such_device,
)  # fmt: skip


def _told(folder: Path, program: Callable[[], list[Any]]) -> tuple[list[Any], list[Any]]:
    torch.manual_seed(0)
    running = begin(folder, Options(rehearse=parse_spec("cuda:2x1MiB")))
    try:
        made = program()
        said = [(str(each.device), type(each).__name__, each.cpu().tolist()) for each in made]
        del made
    finally:
        running.stop()
    assert not running.trouble
    events = [
        (event.did, event.op, event.site, event.storage, event.other, dict(event.facts))
        for event in open_run(folder).events()
    ]
    return said, [(*rest, str(facts)) for *rest, facts in events]


@pytest.mark.parametrize("program", PROGRAMS)
def test_nobody_can_tell(
    tmp_path: Path, program: Callable[[], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    by_itself = _told(tmp_path / "short", program)
    monkeypatch.setattr(short_moves, "moved", lambda *_: None)
    assert by_itself == _told(tmp_path / "long", program)


def test_no_mode_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = AskMode.__torch_function__

    def asks(self: Any, func: Any, *rest: Any) -> Any:
        asked.append(getattr(func, "__name__", ""))
        return ask(self, func, *rest)

    monkeypatch.setattr(AskMode, "__torch_function__", asks)

    def program() -> list[Any]:
        given = torch.ones(1)
        asked.clear()
        given.to("cuda").to("cpu")
        assert asked == []
        given.to("cuda", torch.float16)
        assert "to" in asked
        return []

    _told(tmp_path / "run", program)


def test_a_mode_of_the_program_sees_its_moves(tmp_path: Path) -> None:
    from torch.overrides import TorchFunctionMode

    seen: list[str] = []

    class Sees(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def program() -> list[Any]:
        with Sees():
            return [torch.ones(1).to("cuda")]

    said, _ = _told(tmp_path / "run", program)
    assert said[0][0] == "cuda:0"
    assert "to" in seen
