"""What the rules say of settings is what accelerate and transformers do with them."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("accelerate")
pytest.importorskip("transformers")

from tensortrail.doctor.settings.examine import review
from tensortrail.doctor.settings.reading import read_settings
from tensortrail.rules import all_rules
from tests.doctor.settings import launched


def example(code: str, number: int, tmp_path: Path) -> Path:
    """A bad example of the rule as a file, which the rule reports."""
    bad = all_rules()[code].bad[number]
    return written(bad.source, tmp_path / bad.path, code)


def written(source: str, path: Path, code: str = "") -> Path:
    path.write_text(source, encoding="utf-8")
    found = {each.code for each in review(read_settings(str(path)))}
    assert code in found if code else not found
    return path


@pytest.mark.parametrize(
    ("code", "number", "message"),
    [
        ("CFG914", 0, "the following accelerate config variables will be ignored"),
        ("CFG914", 1, "the following accelerate config variables will be ignored"),
        ("CFG925", 0, "requires `activation_checkpointing=True`"),
        ("CFG925", 1, "set `--fsdp_sync_module_states` to `True`"),
        ("CFG925", 2, "FSDP2 does not support LOCAL_STATE_DICT"),
        ("CFG922", 0, "invalid truth value full_shard"),
    ],
)
def test_accelerate_refuses(code: str, number: int, message: str, tmp_path: Path) -> None:
    file = example(code, number, tmp_path)
    (tmp_path / "zero3.json").write_text('{"zero_optimization": {"stage": 3}}')
    text = file.read_text(encoding="utf-8").replace("zero3.json", str(tmp_path / "zero3.json"))
    file.write_text(text, encoding="utf-8")
    start = launched.deepspeed if "DEEPSPEED" in text else launched.fsdp
    with pytest.raises(ValueError, match=re.escape(message)):
        start(file)


def test_accelerate_knows_no_other_names(tmp_path: Path) -> None:
    text = "distributed_type: 'NO'\nnum_processes: 1\nprecision: bf16\n"
    file = written(text, tmp_path / "accelerate.yaml", "CFG902")
    with pytest.raises(ValueError, match=r"had unknown keys \(\['precision'\]\)"):
        launched.arguments(file)


def test_a_renamed_setting_of_fsdp_does_nothing(tmp_path: Path) -> None:
    assert launched.fsdp(example("CFG902", 0, tmp_path)).backward_prefetch is None
    instead = all_rules()["CFG902"].bad[0].instead or ""
    file = written(instead, tmp_path / "right.yaml")
    assert launched.fsdp(file).backward_prefetch.name == "BACKWARD_PRE"


def test_an_unquoted_no_is_no_string(tmp_path: Path) -> None:
    file = example("CFG915", 0, tmp_path)
    with (
        pytest.raises(AttributeError, match="'bool' object has no attribute 'lower'"),
        launched.environment(file),
    ):
        pass


def test_an_optimizer_on_nvme_without_a_path_goes_to_a_folder_named_none(tmp_path: Path) -> None:
    text = (
        "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
        "  offload_optimizer_device: nvme\nnum_processes: 2\n"
    )
    plugin = launched.deepspeed(written(text, tmp_path / "accelerate.yaml", "CFG905"))
    given = plugin.deepspeed_config["zero_optimization"]["offload_optimizer"]
    assert given == {"device": "nvme", "nvme_path": "none"}


def test_the_flag_of_stage_3_is_taken_back(tmp_path: Path) -> None:
    text = all_rules()["CFG908"].bad[0].source + "num_processes: 2\n"
    file = written(text, tmp_path / "accelerate.yaml", "CFG908")
    with pytest.warns(UserWarning, match="only applicable for ZeRO Stage 3"):
        assert launched.deepspeed(file).zero3_init_flag is False


def test_fsdp2_shards_fully_whatever_the_strategy_says(tmp_path: Path) -> None:
    plugin = launched.fsdp(example("CFG921", 0, tmp_path))
    assert plugin.sharding_strategy is None
    assert plugin.reshard_after_forward is True
    assert launched.fsdp(example("CFG921", 1, tmp_path)).forward_prefetch is None
    instead = all_rules()["CFG921"].bad[0].instead or ""
    text = f"{instead}  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n".replace(
        "num_processes: 2\n  ", "  "
    )
    file = written(text + "num_processes: 2\n", tmp_path / "right.yaml")
    assert launched.fsdp(file).reshard_after_forward is False


def test_fsdp1_does_not_read_resharding(tmp_path: Path) -> None:
    plugin = launched.fsdp(example("CFG922", 1, tmp_path))
    assert plugin.sharding_strategy.name == "FULL_SHARD"


def test_a_policy_reads_its_own_setting(tmp_path: Path) -> None:
    plugin = launched.fsdp(example("CFG923", 0, tmp_path))
    assert plugin.transformer_cls_names_to_wrap is None
    assert launched.fsdp(example("CFG923", 1, tmp_path)).auto_wrap_policy is None
    assert launched.fsdp(example("CFG924", 0, tmp_path)).auto_wrap_policy is None


def test_the_block_of_another_launcher_is_not_read(tmp_path: Path) -> None:
    with launched.environment(example("CFG926", 0, tmp_path)) as args:
        assert args.multi_gpu
        assert not args.use_fsdp


def test_one_process_is_started(tmp_path: Path) -> None:
    args = launched.arguments(example("CFG927", 0, tmp_path))
    chosen = (args.multi_gpu, args.use_fsdp, args.use_deepspeed, args.tpu, args.use_megatron_lm)
    assert not any(chosen), "then launch_command calls simple_launcher"


@pytest.mark.parametrize(
    ("code", "number", "message"),
    [
        ("CFG941", 0, "requires the save and eval strategy to match"),
        ("CFG941", 1, "to be a round multiple of the evaluation steps"),
    ],
)
def test_transformers_refuses(code: str, number: int, message: str, tmp_path: Path) -> None:
    values = dict(read_settings(str(example(code, number, tmp_path))).values)
    with pytest.raises(ValueError, match=message):
        _arguments(tmp_path, values)


def test_two_half_precisions_are_refused(tmp_path: Path) -> None:
    text = (
        '{"output_dir": "o", "num_train_epochs": 1,\n'
        '"save_strategy": "no", "fp16": true, "bf16": true}'
    )
    file = written(text, tmp_path / "arguments.json", "CFG912")
    with pytest.raises(ValueError, match="At most one of fp16 and bf16"):
        _arguments(tmp_path, dict(read_settings(str(file)).values))


def test_fsdp_config_alone_switches_nothing_on(tmp_path: Path) -> None:
    values = dict(read_settings(str(example("CFG943", 0, tmp_path))).values)
    assert _arguments(tmp_path, values).fsdp_plugin_args is None
    assert _arguments(tmp_path, values | {"fsdp": True}).fsdp_plugin_args is not None


def test_what_needs_several_gpus_stands_in_the_code() -> None:
    from transformers import Trainer

    code = inspect.getsource(Trainer.create_accelerator_and_postprocess)
    assert "can't be used with `save_only_model` along with `load_best_model_at_end`" in code
    assert "not compatible with FSDP state dict type 'SHARDED_STATE_DICT'" in code
    assert "training argument can't both be set to True" in code


def _arguments(tmp_path: Path, values: dict[str, Any]) -> Any:
    from transformers import TrainingArguments

    told = {"use_cpu": True, "report_to": "none", "output_dir": str(tmp_path / "out")}
    return TrainingArguments(**(values | told))
