"""A tiny pipeline of diffusers draws on simulated GPUs what the CPU draws, however offloaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")
transformers = pytest.importorskip("transformers")
diffusers = pytest.importorskip("diffusers")

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
CHANNELS = {"block_out_channels": (8, 16), "norm_num_groups": 4}


def unet() -> Any:
    return diffusers.UNet2DConditionModel(
        **CHANNELS, layers_per_block=1, sample_size=8, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=16, attention_head_dim=4,
    )  # fmt: skip


def vae() -> Any:
    return diffusers.AutoencoderKL(
        **CHANNELS, latent_channels=4, sample_size=16,
        down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2,
    )  # fmt: skip


def text_encoder() -> Any:
    config = transformers.CLIPTextConfig(
        hidden_size=16, intermediate_size=32, num_attention_heads=2, num_hidden_layers=2,
        vocab_size=64, bos_token_id=0, eos_token_id=2, pad_token_id=1,
    )  # fmt: skip
    return transformers.CLIPTextModel(config)


def pipeline() -> Any:
    torch.manual_seed(0)
    made = diffusers.StableDiffusionPipeline(
        unet=unet(), vae=vae(), text_encoder=text_encoder(), tokenizer=None,
        scheduler=diffusers.DDIMScheduler(clip_sample=False, steps_offset=1),
        safety_checker=None, feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    made.set_progress_bar_config(disable=True)
    return made


def drawn(pipe: Any, device: str) -> Any:
    torch.manual_seed(5)
    ids = torch.tensor([[0, 5, 6, 2]])
    prompt = pipe.text_encoder(ids.to(device))[0].to(device)
    return pipe(
        prompt_embeds=prompt, negative_prompt_embeds=torch.zeros_like(prompt),
        generator=torch.Generator().manual_seed(1), num_inference_steps=2, output_type="pt",
        height=16, width=16,
    ).images  # fmt: skip


def forget_the_device() -> None:
    diffusers.utils.torch_utils.TorchDeviceBackend._detect_device_type.cache_clear()


@pytest.fixture(autouse=True)
def _diffusers_looks_for_devices_anew() -> Iterator[None]:
    forget_the_device()
    yield
    forget_the_device()


@pytest.fixture(scope="module")
def expected() -> Any:
    with torch.no_grad():
        return drawn(pipeline(), "cpu")


def moved(pipe: Any) -> None:
    pipe.to("cuda")


def offloaded_by_model(pipe: Any) -> None:
    pipe.enable_model_cpu_offload()


def offloaded_by_layer(pipe: Any) -> None:
    pipe.enable_sequential_cpu_offload()


def offloaded_by_group(pipe: Any) -> None:
    for model in (pipe.unet, pipe.vae, pipe.text_encoder):
        diffusers.hooks.apply_group_offloading(
            model, torch.device("cuda"), offload_type="block_level", num_blocks_per_group=1
        )


def offloaded_by_leaf_in_a_stream(pipe: Any) -> None:
    for model in (pipe.unet, pipe.vae, pipe.text_encoder):
        diffusers.hooks.apply_group_offloading(
            model, torch.device("cuda"), offload_type="leaf_level", use_stream=True
        )


@pytest.mark.parametrize(
    ("place", "at_rest"),
    [
        (moved, "cuda"),
        (offloaded_by_model, "cpu"),
        (offloaded_by_layer, "meta"),
        (offloaded_by_group, "cpu"),
        (offloaded_by_leaf_in_a_stream, "cpu"),
    ],
)
def test_the_picture_is_that_of_the_cpu(
    gpus: Any, expected: Any, place: Callable[[Any], None], at_rest: str
) -> None:
    pipe = pipeline()
    place(pipe)
    with torch.no_grad():
        picture = drawn(pipe, "cuda")
    assert picture.is_cuda
    torch.testing.assert_close(picture.cpu(), expected)
    assert pipe.unet.conv_in.weight.device.type == at_rest


def test_offload_needs_less_device_memory(gpus: Any) -> None:
    def peak(place: Callable[[Any], None]) -> int:
        pipe = pipeline()
        torch.cuda.reset_peak_memory_stats()
        place(pipe)
        with torch.no_grad():
            drawn(pipe, "cuda")
        return int(torch.cuda.max_memory_allocated())

    assert peak(offloaded_by_layer) < peak(offloaded_by_model) < peak(moved)


def test_a_part_used_past_its_hook_raises_as_on_a_gpu(gpus: Any) -> None:
    pipe = pipeline()
    pipe.enable_model_cpu_offload()
    latents = torch.randn(1, 4, 8, 8, device="cuda")
    with pytest.raises(RuntimeError, match=r"\(torch.cuda.FloatTensor\) and weight type"):
        pipe.vae.decoder(latents)
