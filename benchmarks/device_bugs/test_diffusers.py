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


@pytest.mark.fix("5a8b35692")
def test_ddim_draws_noise_with_a_generator_of_the_gpu():
    from diffusers.schedulers.scheduling_ddim import DDIMScheduler

    scheduler = DDIMScheduler()
    scheduler.set_timesteps(4)
    sample = torch.ones(1, 4, 2, 2, device=GPU)
    generator = torch.Generator(GPU).manual_seed(0)
    found = scheduler.step(sample, 500, sample, eta=1.0, generator=generator).prev_sample
    assert found.device == torch.device(GPU)


@pytest.mark.fix("e7ffeae0a")
def test_wan_ends_on_another_gpu():
    from accelerate import dispatch_model

    model = wan().eval()
    other = "cpu" if GPU == "cpu" else "cuda:1"
    last = ("norm_out", "proj_out", "blocks")
    names = {name.partition(".")[0] for name in model.state_dict()}
    places = {name: other if name in last else GPU for name in (*names, "rope")}
    dispatch_model(model, places, main_device=GPU, force_hooks=True)
    with torch.no_grad():
        out = model(
            hidden_states=torch.ones(1, 4, 2, 8, 8),
            timestep=torch.tensor([3]),
            encoder_hidden_states=torch.ones(1, 6, 16),
        )
    assert out.sample.isfinite().all()


@pytest.mark.fix("ba66c64a2")
@needs_gpu
def test_a_modular_pipeline_runs_where_its_groups_are_loaded():
    from diffusers.hooks import apply_group_offloading
    from diffusers.modular_pipelines.modular_pipeline import ModularPipeline

    model = Direct()
    apply_group_offloading(
        model, torch.device(GPU), offload_type="block_level", num_blocks_per_group=1
    )
    pipeline = SimpleNamespace(components={"model": model}, device=torch.device("cpu"))
    assert ModularPipeline._execution_device.fget(pipeline) == torch.device(GPU)
