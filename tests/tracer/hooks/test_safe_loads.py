"""A load that runs torch's code alone is told of by its result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin


class Own(torch.Tensor):  # type: ignore[misc]
    """A tensor class of the user's."""


def told(folder: Path, load: Callable[[], Any]) -> list[tuple[Did, Any]]:
    running = begin(folder)
    try:
        load()
    finally:
        running.stop()
    assert not running.trouble
    events = open_run(folder).events(Did.CREATE, Did.SWAP, Did.LOAD)
    return [(each.did, each.storage.shape if each.storage else None) for each in events]


def test_it_tells_what_was_loaded_and_not_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.serialization, "get_safe_globals", list)  # whatever was imported
    saved = {"a": torch.ones(3), "b": torch.nn.Parameter(torch.ones(2, 2))}
    torch.save(saved, tmp_path / "weights.pt")
    said = told(tmp_path / "run", lambda: torch.load(tmp_path / "weights.pt"))
    assert said == [(Did.LOAD, (3,)), (Did.LOAD, (2, 2))]


@pytest.mark.parametrize("way", ["trusted", "located", "allowed"])
def test_code_of_the_user_s_is_recorded(tmp_path: Path, way: str) -> None:
    def located(storage: Any, place: str) -> Any:
        torch.zeros(5)
        return storage

    def load() -> None:
        if way == "trusted":
            torch.load(tmp_path / "weights.pt", weights_only=False)
        elif way == "located":
            torch.load(tmp_path / "weights.pt", map_location=located)
        else:
            with torch.serialization.safe_globals([Own]):
                torch.load(tmp_path / "weights.pt")

    torch.save({"a": torch.ones(3)}, tmp_path / "weights.pt")
    said = told(tmp_path / "run", load)
    assert (Did.SWAP, (3,)) in said or (Did.CREATE, (0,)) in said
    assert said[-1] == (Did.LOAD, (3,))
    assert ((Did.CREATE, (5,)) in said) == (way == "located")


def test_it_is_recorded_again_after_a_load_that_fails(tmp_path: Path) -> None:
    def fail() -> None:
        with pytest.raises(FileNotFoundError):
            torch.load(tmp_path / "none.pt")
        torch.zeros(7).set_(torch.ones(2))

    said = told(tmp_path / "run", fail)
    assert (Did.CREATE, (7,)) in said
    assert said[-1][0] is Did.SWAP
