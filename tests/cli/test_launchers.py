"""A launcher is no program to record: the ranks are."""

from __future__ import annotations

import pytest

from tensortrail.cli.launchers import instead


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
