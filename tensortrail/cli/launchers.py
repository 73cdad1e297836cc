"""Programs that only start others, one for each rank: to record them records nothing."""

from __future__ import annotations

import os

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
    """The command that records the ranks; empty if this is no launcher."""
    return MODULES.get(name if is_module else COMMANDS.get(os.path.basename(name), ""), "")
