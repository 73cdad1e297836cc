"""Fixes of diffusers that a test on a CPU does not show."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="a GPU")
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two GPUs")


def steps(scheduler, count=5):
    """Denoises a sample of the GPU."""
    scheduler.set_timesteps(count, device=GPU)
    sample = torch.ones(1, 4, 2, 2, device=GPU)
    for t in scheduler.timesteps:
        sample = scheduler.step(sample * 0.1, t, sample).prev_sample
    return sample


@pytest.mark.fix("19ab04ff5")
def test_unipc_of_order_three():
    from diffusers.schedulers.scheduling_unipc_multistep import UniPCMultistepScheduler

    assert steps(UniPCMultistepScheduler(solver_order=3)).device == torch.device(GPU)


@pytest.mark.fix("716f24603")
def test_unipc_with_its_tables_on_the_cpu():
    from diffusers.schedulers.scheduling_unipc_multistep import UniPCMultistepScheduler

    assert steps(UniPCMultistepScheduler(solver_order=2)).device == torch.device(GPU)


@pytest.mark.fix("7b030a7d6")
def test_euler_with_a_generator_of_the_gpu():
    from diffusers.schedulers.scheduling_euler_ancestral_discrete import (
        EulerAncestralDiscreteScheduler,
    )

    scheduler = EulerAncestralDiscreteScheduler()
    scheduler.set_timesteps(3)
    sample = torch.ones(1, 4, 2, 2, device=GPU)
    generator = torch.Generator(GPU).manual_seed(0)
    out = scheduler.step(sample, scheduler.timesteps[0], sample, generator=generator)
    assert out.prev_sample.device == torch.device(GPU)


@pytest.mark.fix("1a69c6ff0")
def test_ddim_adds_noise_with_timesteps_of_the_gpu():
    from diffusers.schedulers.scheduling_ddim import DDIMScheduler

    sample = torch.ones(2, 4, 2, 2, device=GPU)
    scheduler = DDIMScheduler(tensor_format="pt")
    noisy = scheduler.add_noise(sample, sample, torch.tensor([1, 2], device=GPU))
    assert noisy.device == torch.device(GPU)


@pytest.mark.fix("ba59e92fb")
@needs_gpu
def test_a_pipeline_is_offloaded_without_an_index():
    from diffusers import DDIMPipeline, DDIMScheduler, UNet2DModel

    unet = UNet2DModel(
        sample_size=8, in_channels=3, out_channels=3, layers_per_block=1,
        block_out_channels=(32, 32), down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )  # fmt: skip
    pipeline = DDIMPipeline(unet, DDIMScheduler())
    pipeline.enable_sequential_cpu_offload()
    assert pipeline._offload_gpu_id == 0


def wan():
    from diffusers import WanTransformer3DModel

    return WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=4,
        out_channels=4, text_dim=16, freq_dim=256, ffn_dim=32, num_layers=1, cross_attn_norm=True,
        qk_norm="rms_norm_across_heads", rope_max_seq_len=32,
    )  # fmt: skip


@pytest.mark.fix("2b7deffe3")
def test_wan_with_its_table_on_another_gpu():
    model = wan().to(GPU)
    other = "cpu" if GPU == "cpu" else "cuda:1"
    model.scale_shift_table.data = model.scale_shift_table.data.to(other)
    out = model(
        hidden_states=torch.ones(1, 4, 2, 8, 8, device=GPU),
        timestep=torch.tensor([3], device=GPU),
        encoder_hidden_states=torch.ones(1, 6, 16, device=GPU),
    )
    assert out.sample.device == torch.device(GPU)


@pytest.mark.fix("65aff37d0")
def test_hidream_with_its_single_blocks_on_another_gpu():
    from accelerate import dispatch_model
    from diffusers import HiDreamImageTransformer2DModel

    model = HiDreamImageTransformer2DModel(
        patch_size=2, in_channels=4, out_channels=4, num_layers=1, num_single_layers=1,
        attention_head_dim=8, num_attention_heads=4, caption_channels=[32, 16], text_emb_dim=64,
        num_routed_experts=4, num_activated_experts=2, axes_dims_rope=(4, 2, 2),
        max_resolution=(32, 32), llama_layers=(0, 1),
    ).eval()  # fmt: skip
    names = {name.partition(".")[0] for name in model.state_dict()}
    other = "cpu" if GPU == "cpu" else "cuda:1"
    places = {name: other if "stream" in name else GPU for name in names}
    dispatch_model(model, places, main_device=GPU, force_hooks=True)
    with torch.no_grad():
        out = model(
            hidden_states=torch.ones(2, 4, 32, 32),
            encoder_hidden_states_t5=torch.ones(2, 8, 32),
            encoder_hidden_states_llama3=torch.ones(2, 2, 8, 16),
            pooled_embeds=torch.ones(2, 64),
            timesteps=torch.tensor([1, 2]),
        )
    assert out.sample.isfinite().all()


@pytest.mark.fix("bb56997d4")
def test_auraflow_with_its_captions_on_another_gpu():
    from accelerate import dispatch_model
    from diffusers import AuraFlowTransformer2DModel

    model = AuraFlowTransformer2DModel(
        sample_size=32, patch_size=2, in_channels=4, num_mmdit_layers=1, num_single_dit_layers=1,
        attention_head_dim=8, num_attention_heads=4, caption_projection_dim=32,
        joint_attention_dim=32, out_channels=4, pos_embed_max_size=256,
    ).eval()  # fmt: skip
    names = {name.partition(".")[0] for name in model.state_dict()}
    other = "cpu" if GPU == "cpu" else "cuda:1"
    places = {name: other if name in ("context_embedder", "norm_out") else GPU for name in names}
    dispatch_model(model, places, main_device=GPU, force_hooks=True)
    with torch.no_grad():
        out = model(
            hidden_states=torch.ones(1, 4, 32, 32),
            encoder_hidden_states=torch.ones(1, 8, 32),
            timestep=torch.tensor([0.5]),
        )
    assert out.sample.isfinite().all()


@pytest.mark.fix("94bcb8941")
def test_helios_draws_noise_with_a_generator_of_the_cpu():
    from diffusers.pipelines.helios.pipeline_helios_pyramid import HeliosPyramidPipeline

    pipeline = SimpleNamespace(scheduler=SimpleNamespace(config=SimpleNamespace(gamma=1 / 3)))
    noise = HeliosPyramidPipeline.sample_block_noise(
        pipeline, 1, 2, 1, 4, 4, (1, 2, 2), torch.device(GPU), torch.Generator().manual_seed(0)
    )
    assert noise.device == torch.device(GPU)


@pytest.mark.fix("3fca52022")
def test_an_offloaded_xl_pipeline_normalizes_latents():
    from diffusers import StableDiffusionXLImg2ImgPipeline

    config = SimpleNamespace(
        force_upcast=False, scaling_factor=1.0, latents_mean=[0.0] * 4, latents_std=[1.0] * 4
    )
    vae = SimpleNamespace(
        config=config,
        encode=lambda image: SimpleNamespace(latents=torch.ones(1, 4, 2, 2).to(image)),
    )
    pipeline = SimpleNamespace(vae=vae, device=torch.device("cpu"))  # where offloaded models lie
    found = StableDiffusionXLImg2ImgPipeline.prepare_latents(
        pipeline, torch.ones(1, 3, 16, 16), None, 1, 1, torch.float32, torch.device(GPU),
        add_noise=False,
    )  # fmt: skip
    assert found.device == torch.device(GPU)


@pytest.mark.fix("54dac3a87")
def test_an_offloaded_text_encoder_is_given_ids_of_the_gpu():
    from diffusers import CogView4Pipeline

    embed = nn.Embedding(8, 4).to(GPU)

    class TextEncoder:
        device, dtype = torch.device("cpu"), torch.float32  # what a hook has offloaded

        def __call__(self, ids, output_hidden_states):
            return SimpleNamespace(hidden_states=[embed(ids), None])

    def tokenizer(*_, **options):
        return SimpleNamespace(input_ids=torch.ones(1, 16, dtype=torch.long))

    pipeline = SimpleNamespace(
        text_encoder=TextEncoder(), tokenizer=tokenizer, _execution_device=torch.device(GPU)
    )
    found = CogView4Pipeline._get_glm_embeds(pipeline, "rain", 16, torch.device(GPU))
    assert found.device == torch.device(GPU)


@pytest.mark.fix("e1b7f1f240")
def test_an_offloaded_pipeline_encodes_a_prompt():
    from diffusers import QwenImageControlNetPipeline

    embed = nn.Embedding(8, 4).to(GPU)

    class Words(dict):
        def __getattr__(self, name):
            return self[name]

        def to(self, device):
            return Words({name: each.to(device) for name, each in self.items()})

    def tokenizer(*_, **options):
        ids = torch.ones(1, 6, dtype=torch.long)
        return Words(input_ids=ids, attention_mask=torch.ones_like(ids))

    def text_encoder(input_ids, attention_mask, output_hidden_states):
        return SimpleNamespace(hidden_states=[embed(input_ids)])

    text_encoder.dtype = torch.float32
    pipeline = SimpleNamespace(
        text_encoder=text_encoder, tokenizer=tokenizer, tokenizer_max_length=6,
        prompt_template_encode="{}", prompt_template_encode_start_idx=0,
        device=torch.device("cpu"), _execution_device=torch.device(GPU),
        _extract_masked_hidden=lambda states, mask: [states[0][mask[0].bool()]],
    )  # fmt: skip
    found, _ = QwenImageControlNetPipeline._get_qwen_prompt_embeds(
        pipeline, "rain", torch.device(GPU)
    )
    assert found.device == torch.device(GPU)


class Chooses(nn.Module):
    """Skips a block in its first pass."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x: torch.Tensor, chosen: tuple[int, ...]) -> torch.Tensor:
        for index in chosen:
            x = self.blocks[index](x)
        return x


@pytest.mark.fix("06ccde949")
@needs_gpu
def test_a_block_that_the_first_pass_did_not_use():
    from diffusers.hooks import apply_group_offloading

    model = Chooses()
    apply_group_offloading(
        model, torch.device(GPU), offload_type="block_level", num_blocks_per_group=1,
        use_stream=True,
    )  # fmt: skip
    x = torch.ones(1, 4, device=GPU)
    with torch.no_grad():
        for chosen in ((0, 1, 3), (0, 1, 3), (0, 2, 3)):
            assert model(x, chosen).device == torch.device(GPU)


class Direct(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("shift", torch.zeros(4))
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.scale + self.shift


@pytest.mark.fix("813d42cc9")
@needs_gpu
def test_what_no_block_has_is_offloaded_again():
    from diffusers.hooks import apply_group_offloading

    model = Direct()
    apply_group_offloading(
        model, torch.device(GPU), offload_type="block_level", num_blocks_per_group=1,
        use_stream=True,
    )  # fmt: skip
    with torch.no_grad():
        model(torch.ones(1, 4, device=GPU))
        model(torch.ones(1, 4, device=GPU))
    assert {each.device.type for each in (*model.parameters(), *model.buffers())} == {"cpu"}
