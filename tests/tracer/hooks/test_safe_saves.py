"""A save of plain tensors is told of before it begins; what else is saved is watched."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.hooks.shared import safe_saves
from tensortrail.tracer.hooks.torch import saves
from tensortrail.tracer.patching.mode_stack import ours
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.watching.mode import TrailMode


class Own:
    """Moves something while it is pickled."""

    def __reduce__(self) -> Any:
        torch.ones(2).to("meta")
        return list, ()


class Mine(dict[str, Any]):
    """A state dict of the user's."""


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict()


def trained() -> dict[str, Any]:
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    return {"optimizer": optimizer.state_dict(), "step": 3, "sizes": (weight.shape, weight.dtype)}


def with_attribute() -> Any:
    tensor = torch.ones(1)
    tensor.mine = Own()
    return [tensor]


def with_extra() -> Any:
    state = OrderedDict(a=torch.ones(1))
    state.mine = Own()  # type: ignore[attr-defined]
    return state


PLAIN: dict[str, Callable[[], Any]] = {"model": model, "trained": trained, "list": lambda: [1, "a"]}
WATCHED: dict[str, Callable[[], Any]] = {
    "object": lambda: {"a": torch.ones(1), "own": Own()},
    "key": lambda: {Path("a"): torch.ones(1)},
    "attribute": with_attribute,
    "extra": with_extra,
    "dict of a class": lambda: Mine(a=torch.ones(1)),
    "sparse": lambda: torch.eye(2).to_sparse(),
}


def saved(folder: Path, data: Any, file: Any) -> tuple[list[Any], bytes]:
    running = begin(folder)
    try:
        torch.save(data, file)
        content = file.getvalue() if isinstance(file, io.BytesIO) else Path(file).read_bytes()
    finally:
        running.stop()
    assert not running.trouble
    events = open_run(folder).events()
    told = [(each.did, each.op, each.site, each.storage, str(each.facts)) for each in events]
    return told, content


def seen_on(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the mode was on while torch wrote."""
    on: list[bool] = []
    write = torch.serialization._save

    def writes(*args: Any, **kwargs: Any) -> Any:
        on.append(ours(TrailMode) is not None)
        return write(*args, **kwargs)

    monkeypatch.setattr(torch.serialization, "_save", writes)
    return on


@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_the_trail_and_the_file_are_the_same(
    tmp_path: Path, make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    on, data = seen_on(monkeypatch), make()
    aside = saved(tmp_path / "aside", data, str(tmp_path / "state.pt"))
    monkeypatch.setattr(saves, "saves_only_plain", lambda *_: False)
    assert aside == saved(tmp_path / "watched", data, str(tmp_path / "state.pt"))
    assert on == [False, True]


@pytest.mark.parametrize("make", WATCHED.values(), ids=WATCHED)
def test_what_may_run_other_code_is_watched(
    tmp_path: Path, make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    on = seen_on(monkeypatch)
    told, _ = saved(tmp_path / "run", make(), tmp_path / "state.pt")
    assert on == [True]
    if make in (WATCHED["object"], with_attribute, with_extra):
        assert Did.MOVE in [did for did, *_ in told]


def test_a_file_of_the_program_s_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = seen_on(monkeypatch)
    saved(tmp_path / "run", model(), io.BytesIO())
    assert on == [True]


def test_what_holds_itself_is_no_trouble(tmp_path: Path) -> None:
    round_: list[Any] = []
    round_.append(round_)
    saved(tmp_path / "run", round_, tmp_path / "state.pt")
    assert safe_saves.DEEPEST < 100
