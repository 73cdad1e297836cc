"""A launcher is no program to record: the ranks are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.cli.launchers import for_command, instead


@pytest.mark.parametrize(
    ("name", "is_module", "command"),
    [
        ("torch.distributed.run", True, "torchrun ... -m tensortrail trace SCRIPT"),
        ("/usr/local/bin/torchrun", False, "torchrun ... -m tensortrail trace SCRIPT"),
        ("/usr/local/bin/accelerate", False, "accelerate launch ... -m tensortrail trace SCRIPT"),
        ("deepspeed", False, "deepspeed ... --module tensortrail trace SCRIPT"),
        ("train.py", False, ""),
        ("pytest", True, ""),
    ],
)
def test_the_command_that_records_the_ranks(name: str, is_module: bool, command: str) -> None:
    assert instead(name, is_module) == command


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["python", "train.py", "--steps", "3"], "tensortrail trace train.py --steps 3"),
        (["/usr/bin/python3", "-m", "train"], "tensortrail trace -m train"),
        (["torchrun", "train.py"], "torchrun ... -m tensortrail trace SCRIPT"),
        (["trian.py"], ""),
        (["python"], ""),
    ],
)
def test_a_command_in_the_place_of_a_script(given: list[str], told: str) -> None:
    assert "".join(for_command(given)).endswith(told)
    assert bool(for_command(given)) == bool(told)


def test_a_command_that_is_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, first in (("runner", "#!/usr/bin/python3"), ("shell", "#!/bin/sh")):
        (tmp_path / name).write_text(f"{first}\n")
        (tmp_path / name).chmod(0o755)
    assert for_command(["runner", "-q"]) == [
        f"to record the command: tensortrail trace {tmp_path / 'runner'} -q"
    ]
    assert not for_command(["shell", "-q"])
