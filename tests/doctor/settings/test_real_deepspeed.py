"""What the rules say of DeepSpeed is what DeepSpeed does, where it is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("deepspeed")

from tensortrail.doctor.settings.examine import review
from tensortrail.doctor.settings.reading import read_settings
from tensortrail.rules import all_rules


def values(code: str, tmp_path: Path, number: int = 0) -> dict[str, Any]:
    """Those of a bad example of the rule, which the rule reports."""
    bad = all_rules()[code].bad[number]
    file = tmp_path / bad.path
    file.write_text(bad.source, encoding="utf-8")
    settings = read_settings(str(file))
    assert code in {each.code for each in review(settings)}
    return dict(settings.values)


def right(code: str) -> dict[str, Any]:
    told = all_rules()[code].bad[0].instead
    assert told
    return dict(json.loads(told))


def zero(settings: dict[str, Any]) -> Any:
    from deepspeed.runtime.zero.config import DeepSpeedZeroConfig

    return DeepSpeedZeroConfig(**settings["zero_optimization"])


def whole(settings: dict[str, Any]) -> Any:
    from deepspeed.runtime.config import DeepSpeedConfig

    return DeepSpeedConfig({"train_micro_batch_size_per_gpu": 1, **settings})


@pytest.mark.parametrize(
    ("code", "number", "read", "message"),
    [
        ("CFG902", 1, zero, "Extra inputs are not permitted"),
        ("CFG907", 0, zero, "Partial offloading only supported for ZeRO Stage 3"),
        ("CFG910", 0, zero, "Cannot provide deprecated parameter 'cpu_offload'"),
        ("CFG911", 0, whole, "train_batch_size is not equal"),
        ("CFG912", 0, whole, "cannot be simultaneously enabled"),
    ],
)
def test_it_refuses(
    code: str, number: int, read: Callable[..., Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises((AssertionError, ValueError), match=message):
        read(values(code, tmp_path, number))
    if number == 0:
        read(right(code))


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    from deepspeed.runtime.config import DeepSpeedConfig

    values("CFG901", tmp_path, 1)
    with pytest.raises(ValueError, match="Duplicate keys in DeepSpeed config"):
        DeepSpeedConfig(str(tmp_path / "deepspeed.json"))


def test_the_optimizer_is_refused(tmp_path: Path) -> None:
    """The engine's own method, on an engine that has nothing but its settings."""
    from deepspeed.runtime.engine import DeepSpeedEngine

    config = whole(values("CFG913", tmp_path))
    engine = SimpleNamespace(
        optimizer_params=lambda: config.optimizer_params,
        optimizer_name=lambda: config.optimizer_name,
        zero_optimization=lambda: config.zero_enabled,
    )
    # Since 0.19.8 DeepSpeed has no 1-bit optimizer any more, and looks for it in torch.optim.
    refused = "1bit-Adam is not compatible with ZeRO|has no attribute 'OneBitAdam'"
    with pytest.raises((AssertionError, AttributeError), match=refused):
        DeepSpeedEngine._configure_basic_optimizer(engine, [])
    engine.optimizer_params = lambda: {"max_grad_norm": 1.0}
    with pytest.raises(ValueError, match="'max_grad_norm' is not supported"):
        DeepSpeedEngine._configure_basic_optimizer(engine, [])


def test_an_elastic_checkpoint_of_stage_3_cannot_be_saved(tmp_path: Path) -> None:
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3

    asked = zero(values("CFG909", tmp_path)).elastic_checkpoint
    with pytest.raises(NotImplementedError, match="elastic checkpointing"):
        DeepSpeedZeroOptimizer_Stage3.state_dict(SimpleNamespace(elastic_checkpoint=asked))


def test_nvme_without_a_path(tmp_path: Path) -> None:
    from deepspeed.runtime.zero.stage3 import DeepSpeedZeroOptimizer_Stage3

    config = zero(values("CFG905", tmp_path)).offload_optimizer
    with pytest.raises(TypeError, match="NoneType"):
        DeepSpeedZeroOptimizer_Stage3._configure_tensor_swapping(SimpleNamespace(), config, {})


def test_the_trainer_and_deepspeed_are_compared(tmp_path: Path) -> None:
    from transformers import TrainingArguments
    from transformers.integrations.deepspeed import HfTrainerDeepSpeedConfig

    told = values("CFG945", tmp_path)
    config = HfTrainerDeepSpeedConfig(told.pop("deepspeed"))
    more = {"use_cpu": True, "report_to": "none", "output_dir": str(tmp_path / "out")}
    config.trainer_config_process(TrainingArguments(**(told | more)))
    assert config.mismatches == [
        "- ds gradient_accumulation_steps=1 vs hf gradient_accumulation_steps=8"
    ]


def test_the_optimizers_of_lower_stages_are_not_given_what_only_stage_3_reads() -> None:
    """CFG903, CFG906 and CFG908: by the arguments of the real constructor."""
    import inspect

    from deepspeed.runtime.zero.stage_1_and_2 import DeepSpeedZeroOptimizer

    names = set(inspect.signature(DeepSpeedZeroOptimizer.__init__).parameters)
    assert "offload_optimizer_config" in names
    for unread in ("offload_param_config", "zero_hpz_partition_size", "zero_quantized_weights"):
        assert unread not in names
    code = inspect.getsource(DeepSpeedZeroOptimizer)
    assert "nvme" not in code
    assert "gather_16bit_weights_on_model_save" not in code
