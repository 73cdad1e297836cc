"""What the real libraries write is judged fine, whatever else they put beside the weights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from tensortrail.doctor.checkpoint.examine import examine

pytestmark = [pytest.mark.real, pytest.mark.complete]


def model() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            vocab_size=64,
        )
    )


def with_transformers(folder: Path) -> None:
    model().save_pretrained(folder)


def with_transformers_in_shards(folder: Path) -> None:
    model().save_pretrained(folder, max_shard_size="20KB")


def with_accelerate(folder: Path) -> None:
    from accelerate import Accelerator

    Accelerator(cpu=True).save_model(model(), str(folder), max_shard_size="20KB")


def with_accelerate_in_pickles(folder: Path) -> None:
    from accelerate import Accelerator

    Accelerator(cpu=True).save_model(
        model(), str(folder), max_shard_size="20KB", safe_serialization=False
    )


def with_accelerate_and_its_optimizer(folder: Path) -> None:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    built = model()
    prepared, optimizer = accelerator.prepare(built, torch.optim.AdamW(built.parameters()))
    loss = prepared(input_ids=torch.ones(1, 4, dtype=torch.long)).logits.sum()
    accelerator.backward(loss)
    optimizer.step()
    accelerator.save_state(str(folder))


def with_peft(folder: Path) -> None:
    from peft import LoraConfig, get_peft_model

    get_peft_model(model(), LoraConfig(target_modules=["q_proj", "v_proj"])).save_pretrained(folder)


def with_diffusers(folder: Path) -> None:
    from diffusers import UNet2DModel

    UNet2DModel(
        sample_size=8,
        block_out_channels=(8, 8),
        norm_num_groups=4,
        layers_per_block=1,
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    ).save_pretrained(folder, max_shard_size="20KB")


def with_diffusers_as_a_pipeline(folder: Path) -> None:
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

    unet = UNet2DModel(
        sample_size=8,
        block_out_channels=(8,),
        norm_num_groups=4,
        layers_per_block=1,
        down_block_types=("DownBlock2D",),
        up_block_types=("UpBlock2D",),
    )
    DDPMPipeline(unet, DDPMScheduler()).save_pretrained(folder)


def with_torchao(folder: Path) -> None:
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    built = model()
    quantize_(built, Int8WeightOnlyConfig())
    folder.mkdir()
    torch.save(built.state_dict(), folder / "pytorch_model.bin")


def with_torch_in_every_type(folder: Path) -> None:
    folder.mkdir()
    types = (torch.bool, torch.uint8, torch.int16, torch.float16, torch.bfloat16, torch.complex64)
    tensors = {str(each): torch.zeros(3, 5).to(each) for each in types}
    tensors["float8"] = torch.zeros(4, 4).to(torch.float8_e4m3fn)
    tensors["a view"] = torch.zeros(10, 10)[::2, 1:3].t()
    tensors["a scalar"] = torch.tensor(3.0)
    tensors["nothing"] = torch.empty(0, 4)
    tensors["a parameter"] = torch.nn.Parameter(torch.ones(2))
    tensors["sparse"] = torch.eye(3).to_sparse()
    tied = torch.ones(6)
    torch.save(tensors | {"one": tied, "other": tied[2:]}, folder / "all.pt")
    plain = {key: value for key, value in tensors.items() if key != "float8"}
    torch.save(plain, folder / "old.pth", _use_new_zipfile_serialization=False)


WRITERS: list[Callable[[Path], None]] = [
    with_transformers,
    with_transformers_in_shards,
    with_accelerate,
    with_accelerate_in_pickles,
    with_accelerate_and_its_optimizer,
    with_peft,
    with_diffusers,
    with_diffusers_as_a_pipeline,
    with_torchao,
    with_torch_in_every_type,
]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
@pytest.mark.filterwarnings("ignore")
def test_what_a_library_writes_is_fine(tmp_path: Path, writer: Callable[[Path], None]) -> None:
    folder = tmp_path / "written"
    writer(folder)
    found = examine(str(folder))
    assert not [(each.code, each.message) for each in found.findings]
    assert not found.problems
    assert sum(len(file.tensors) for file in found.checkpoint.files) > 3


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:%b\nsize 9\n" % (b"a" * 64)
DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "cut": ("CKP801", lambda data: data[: len(data) * 2 // 3]),
    "more behind": ("CKP802", lambda data: data + b"more"),
    "a pointer": ("CKP803", lambda data: POINTER),
    "only zeros": ("CKP804", lambda data: bytes(len(data))),
    "a page": ("CKP813", lambda data: b"<!DOCTYPE html><html><body>404</body></html>"),
}


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)
@pytest.mark.filterwarnings("ignore")
def test_each_damage_is_seen_in_what_a_library_writes(
    tmp_path: Path, writer: Callable[[Path], None]
) -> None:
    """Its largest weight file, damaged in each way: the right check speaks of it, and no other."""
    folder = tmp_path / "written"
    writer(folder)
    weights = [Path(file.path) for file in examine(str(folder)).checkpoint.files]
    largest = max(weights, key=lambda path: path.stat().st_size)
    whole = largest.read_bytes()
    for name, (code, damage) in DAMAGES.items():
        largest.write_bytes(damage(whole))
        found = examine(str(folder))
        assert {(each.code, each.site.file) for each in found.findings} == {(code, str(largest))}, (
            f"{name}: {[(each.code, each.message) for each in found.findings]}"
        )
    largest.write_bytes(whole)
    assert not examine(str(folder)).findings
