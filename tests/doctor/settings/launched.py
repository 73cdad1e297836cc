"""What accelerate itself makes of a settings file, as `accelerate launch` does it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate.commands import launch
from accelerate.utils import (
    DeepSpeedPlugin,
    FullyShardedDataParallelPlugin,
    patch_environment,
)
from accelerate.utils.launch import (
    prepare_deepspeed_cmd_env,
    prepare_multi_gpu_env,
    prepare_simple_launcher_cmd_env,
)


def arguments(file: Path, *more: str) -> Any:
    words = ["--config_file", str(file), "--main_process_port", "0", *more, "script.py"]
    args, defaults, from_file = launch._validate_launch_command(
        launch.launch_command_parser().parse_args(words)
    )
    names = list(defaults.deepspeed_config)
    names += ["mixed_precision"] if from_file else []
    args.deepspeed_fields_from_accelerate_config = ",".join(names)
    return args


@contextmanager
def environment(file: Path) -> Iterator[Any]:
    """The variables that a rank is started with."""
    args = arguments(file)
    if args.use_deepspeed:
        _, env = prepare_deepspeed_cmd_env(args)
    elif args.use_fsdp or args.multi_gpu:
        env = prepare_multi_gpu_env(args)
    else:
        _, env = prepare_simple_launcher_cmd_env(args)
    with patch_environment(**env):
        yield args


def fsdp(file: Path) -> Any:
    without_gpu = {"fsdp_sync_module_states": "false", "fsdp_cpu_ram_efficient_loading": "false"}
    with environment(file) as args, patch_environment(**without_gpu):
        assert args.use_fsdp
        return FullyShardedDataParallelPlugin()


def deepspeed(file: Path) -> Any:
    with environment(file) as args:
        assert args.use_deepspeed
        return DeepSpeedPlugin()
