"""`CUDA_VISIBLE_DEVICES` says how many GPUs a rehearsal simulates, unless the option does."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.tracer.rehearsal.devices.spec import VISIBLE, parse_spec
from tests.rules.recorded import record


@pytest.mark.parametrize(
    ("listed", "text", "count"),
    [
        (None, "cuda", 1),
        ("0,1,2", "cuda", 3),
        ("3", "cudax24GiB", 1),
        ("GPU-8932f937-d72c,MIG-41b35c", "cuda", 2),
        ("", "cuda", 0),
        ("-1", "cuda", 0),
        ("0,-1,1", "cuda", 1),
        ("0", "cuda:2", 2),
        ("", "cuda:1x1GiB", 1),
    ],
)
def test_the_count(
    monkeypatch: pytest.MonkeyPatch, listed: str | None, text: str, count: int
) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    if listed is not None:
        monkeypatch.setenv(VISIBLE, listed)
    assert parse_spec(text).count == count


def test_without_a_gpu_a_program_finds_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VISIBLE, "")
    source = """\
        import torch
        assert not torch.cuda.is_available()
        assert torch.cuda.device_count() == 0
        torch.manual_seed(0)
        torch.nn.Linear(2, 2)(torch.ones(2)).sum().backward()
        torch.ones(2).to("cuda")
    """
    _, _, error = record(tmp_path, source, rehearse="cuda")
    assert type(error) is RuntimeError
    assert str(error) == "No CUDA GPUs are available"
