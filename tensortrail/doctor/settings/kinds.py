"""Tells whose settings a file holds by the names in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensortrail.rules.settings_file import SettingsKind

_ACCELERATE = frozenset(("distributed_type", "compute_environment"))
_BATCH = frozenset(("train_batch_size", "train_micro_batch_size_per_gpu"))
_BESIDE_BATCH = frozenset((
    "fp16", "bf16", "gradient_clipping", "steps_per_print", "wall_clock_breakdown",
    "zero_allow_untested_optimizer", "gradient_accumulation_steps",
))  # fmt: skip
_TRAINING = frozenset((
    "output_dir", "per_device_train_batch_size", "per_device_eval_batch_size",
    "gradient_accumulation_steps",
    "gradient_checkpointing", "activation_checkpointing", "save_strategy", "eval_strategy",
    "evaluation_strategy", "save_total_limit", "save_only_model", "load_best_model_at_end",
    "fsdp", "fsdp_config", "deepspeed", "num_train_epochs", "lr_scheduler_type", "max_grad_norm",
))  # fmt: skip
_FEWEST = 3
_FSDP = frozenset((
    "transformer_layer_cls_to_wrap", "backward_prefetch", "forward_prefetch", "use_orig_params",
    "cpu_ram_efficient_loading", "sync_module_states", "reshard_after_forward", "min_num_params",
    "limit_all_gathers", "xla_fsdp_settings", "auto_wrap_policy", "state_dict_type",
))  # fmt: skip


def may_be_settings(text: str) -> bool:
    """A quick look before the text is parsed: it has some of the names."""
    if any(name in text for name in (*_ACCELERATE, "zero_optimization")):
        return True
    names = (_BATCH | _BESIDE_BATCH, _TRAINING, _FSDP)
    return any(sum(name in text for name in each) >= 2 for each in names)


def kind_of(values: Mapping[str, Any]) -> SettingsKind | None:
    """None for a file of something else."""
    names = {name for name in values if isinstance(name, str)}
    if names & _ACCELERATE:
        return SettingsKind.ACCELERATE
    if isinstance(values.get("zero_optimization"), (dict, bool)):
        return SettingsKind.DEEPSPEED
    if "per_device_train_batch_size" not in names and names & _BATCH and names & _BESIDE_BATCH:
        blocks = isinstance(values.get("fp16"), dict) or isinstance(values.get("bf16"), dict)
        return SettingsKind.DEEPSPEED if blocks or "steps_per_print" in names else None
    if len(names & _TRAINING) >= _FEWEST:
        return SettingsKind.TRAINING
    if len({name.removeprefix("fsdp_") for name in names} & _FSDP) >= 2:
        return SettingsKind.FSDP
    return None
