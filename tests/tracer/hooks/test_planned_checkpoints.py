"""A distributed checkpoint is told as a whole. Where torch alone plans, writes and reads its pieces
the mode is off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

if not torch.distributed.is_available():
    pytest.skip("torch without distributed", allow_module_level=True)

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import default_planner

from tensortrail.rules.timeline import Did
from tensortrail.tracer.patching.mode_stack import ours
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.watching.mode import TrailMode

STEPS = (
    (default_planner, "create_default_local_save_plan"),
    (torch.serialization, "_save"),
    (default_planner, "create_default_local_load_plan"),
    (torch.serialization, "_load"),
)


class Own(torch.Tensor):  # type: ignore[misc]
    """A tensor class of the user's."""


class Pieces:
    """Says itself which pieces it has."""

    def __create_write_items__(self, key: str, _: Any) -> list[Any]:
        torch.ones(5)
        return []


def seen_on(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[bool]]:
    """Whether the mode was on in each step."""
    on: dict[str, set[bool]] = {}

    def watch(owner: Any, name: str) -> None:
        step = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            on.setdefault(name, set()).add(ours(TrailMode) is not None)
            return step(*args, **kwargs)

        monkeypatch.setattr(owner, name, watched)

    for owner, name in STEPS:
        watch(owner, name)
    return on


def told(folder: Path, state: dict[str, Any], *, load: bool = True) -> list[tuple[Did, Any]]:
    running = begin(folder / "run")
    try:
        dcp.save(state, checkpoint_id=folder / "saved", no_dist=True)
        if load:
            dcp.load(state, checkpoint_id=folder / "saved", no_dist=True)
    finally:
        running.stop()
    assert not running.trouble
    events = open_run(folder / "run").events(Did.CREATE, Did.SAVE, Did.COPY, Did.LOAD)
    return [(each.did, each.facts.get("key")) for each in events]


@pytest.mark.filterwarnings("ignore")
def test_only_what_is_done_with_the_tensors_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.serialization, "get_safe_globals", list)  # whatever was imported
    on, state = seen_on(monkeypatch), {"a": torch.ones(3), "b": torch.ones(2, 2)}
    said = told(tmp_path, state)
    assert on == {name: {False} for _, name in STEPS}
    assert [key for did, key in said if did is Did.SAVE] == ["a", "b", None]
    assert [key for did, key in said if did is Did.LOAD] == ["a", "b"]
    assert [did for did, _ in said].count(Did.COPY) == 2
    assert Did.CREATE not in [did for did, _ in said]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("value", "creates"), [(torch.ones(3).as_subclass(Own), False), (Pieces(), True)]
)
def test_code_of_the_user_s_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: Any, creates: bool
) -> None:
    on = seen_on(monkeypatch)
    said = told(tmp_path, {"a": value}, load=False)
    assert on["create_default_local_save_plan"] == {True}
    assert (Did.CREATE in [did for did, _ in said]) == creates
