"""Commands that run a program: what `tensortrail trace` is to be given in their place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress

MODULES = {
    "torch.distributed.run": "torchrun ... -m tensortrail trace SCRIPT",
    "torch.distributed.launch": "torchrun ... -m tensortrail trace SCRIPT",
    "accelerate.commands.launch": "accelerate launch ... -m tensortrail trace SCRIPT",
    "deepspeed.launcher.runner": "deepspeed ... --module tensortrail trace SCRIPT",
}
COMMANDS = {
    "torchrun": "torch.distributed.run",
    "accelerate": "accelerate.commands.launch",
    "deepspeed": "deepspeed.launcher.runner",
}


def instead(name: str, is_module: bool) -> str:
    """The command that records the ranks of a launcher, which only starts them; empty if this is
    none."""
    return MODULES.get(name if is_module else COMMANDS.get(os.path.basename(name), ""), "")


def for_command(given: Sequence[str]) -> list[str]:
    """How to record what was given as a command of the shell."""
    name, rest = given[0], " ".join(given[1:])
    if command := instead(name, is_module=False):
        return [f"to record the ranks: {command}"]
    if os.path.basename(name).startswith("python") and rest:
        return [f"the interpreter is not named: tensortrail trace {rest}"]
    path = shutil.which(name)
    return [f"to record the command: tensortrail trace {path} {rest}"] if _is_script(path) else []


def _is_script(path: str | None) -> bool:
    with suppress(OSError):
        if path is not None:
            with open(path, "rb") as opened:
                return b"python" in opened.readline(500)
    return False
