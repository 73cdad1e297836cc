"""Modules that took a wrapper while a recording was on have the function itself at its end."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")

from tensortrail.tracer.patching import patches  # noqa: E402
from tests.tracer.transparent.twice import recorded  # noqa: E402


@pytest.fixture
def taker() -> Iterator[ModuleType]:
    module = ModuleType("taker_of_wrappers")
    sys.modules[module.__name__] = module
    yield module
    del sys.modules[module.__name__]


def test_it_is_given_back_under_any_name(tmp_path: Path, taker: ModuleType) -> None:
    load, add = torch.load, torch.optim.Optimizer.add_param_group
    with recorded(tmp_path):
        exec("from torch import load as read, save", vars(taker))
        vars(taker)["add"] = torch.optim.Optimizer.add_param_group  # which two hooks wrap
        assert vars(taker)["read"] is torch.load is not load
    assert vars(taker)["read"] is load
    assert vars(taker)["save"] is torch.save
    assert vars(taker)["add"] is add


def test_nobody_is_asked_where_nobody_took_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded(tmp_path / "first"):
        pass  # what is imported by the first recording of a process may take some
    with recorded(tmp_path / "second"):
        monkeypatch.setattr(patches, "_namespaces_with", pytest.fail)
