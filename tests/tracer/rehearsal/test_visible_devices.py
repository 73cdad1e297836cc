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


@pytest.mark.parametrize(
    ("listed", "text", "count"),
    [("", "cuda", 0), ("-1", "cuda:2", 0), ("0", "cuda:2", 1), ("1", "cuda:2", 1),
     ("5", "cuda:2", 0), ("5", "cuda", 1), ("0,1,2", "cuda:2", 2), ("0,1", "cuda", 1)],
)  # fmt: skip
def test_a_program_hides_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listed: str, text: str, count: int
) -> None:
    monkeypatch.setenv(VISIBLE, "0,1")  # so that what the program sets is taken back
    monkeypatch.delenv(VISIBLE)
    source = f"""\
        import os
        os.environ["{VISIBLE}"] = "{listed}"
        import torch
        assert torch.cuda.device_count() == {count}
        assert torch.cuda.is_available() is {count > 0}
        with_numbers = [torch.ones(1, device=f"cuda:{{each}}").device for each in range({count})]
        os.environ["{VISIBLE}"] = ""
        assert torch.cuda.device_count() == {count}
        torch.ones(2).to("cuda:{count}")
    """
    _, _, error = record(tmp_path, source, rehearse=text)
    assert str(error).startswith(
        "CUDA error: invalid device ordinal" if count else "No CUDA GPUs are available"
    )


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
