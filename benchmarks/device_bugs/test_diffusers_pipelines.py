"""Fixes of pipelines of diffusers that a test on a CPU does not show."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

GPU = "cuda:0" if torch.cuda.is_available() else "cpu"
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="a GPU")


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


@pytest.mark.fix("94bcb8941")
def test_helios_draws_noise_with_a_generator_of_the_cpu():
    from diffusers.pipelines.helios.pipeline_helios_pyramid import HeliosPyramidPipeline

    pipeline = SimpleNamespace(scheduler=SimpleNamespace(config=SimpleNamespace(gamma=0.2)))
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


@pytest.mark.fix("bd2c91958")
def test_cosmos_with_its_decoder_on_another_gpu():
    from diffusers import Cosmos3OmniPipeline

    other = torch.device("cpu" if GPU == "cpu" else "cuda:1")
    vae = SimpleNamespace(
        dtype=torch.float32,
        encode=lambda x: SimpleNamespace(latents=x.to(other)),  # as a hook of accelerate does
    )
    pipeline = SimpleNamespace(
        vae=vae, _vae_latents_mean=torch.zeros(3), _vae_latents_inv_std=torch.ones(3)
    )
    found = Cosmos3OmniPipeline._encode_video(pipeline, torch.ones(1, 3, 1, 2, 2, device=GPU))
    assert found.device == other


@pytest.mark.fix("01969142b")
def test_an_offloaded_decoder_of_helios():
    from diffusers.modular_pipelines.helios.decoders import HeliosDecodeStep

    config = SimpleNamespace(latents_mean=[0.0] * 2, latents_std=[1.0] * 2, z_dim=2)
    vae = SimpleNamespace(
        config=config,
        dtype=torch.float32,
        device=torch.device("cpu"),  # what a hook has offloaded
        decode=lambda latents, return_dict: (latents,),
    )
    components = SimpleNamespace(
        vae=vae,
        _execution_device=torch.device(GPU),
        vae_scale_factor_temporal=1,
        video_processor=SimpleNamespace(postprocess_video=lambda video, output_type: video),
    )
    state = SimpleNamespace(latent_chunks=[torch.ones(1, 2, 3, 2, 2, device=GPU)], output_type="pt")
    step = SimpleNamespace(get_block_state=lambda _: state, set_block_state=lambda *_: None)
    HeliosDecodeStep.__call__(step, components, None)
    assert state.videos.device == torch.device(GPU)


@pytest.mark.fix("271507934")
def test_an_offloaded_pipeline_paints_over():
    from diffusers import StableDiffusionInpaintPipelineLegacy

    weight = torch.ones(1, device=GPU)

    def encode(image):
        sample = image * weight
        return SimpleNamespace(latent_dist=SimpleNamespace(sample=lambda generator: sample))

    pipeline = SimpleNamespace(
        device=torch.device("cpu"),  # where offloaded models lie
        vae=SimpleNamespace(encode=encode, config=SimpleNamespace(scaling_factor=1.0)),
        scheduler=SimpleNamespace(add_noise=lambda latents, noise, timestep: latents + noise),
    )
    found, *_ = StableDiffusionInpaintPipelineLegacy.prepare_latents(
        pipeline, torch.ones(1, 4, 2, 2), None, 1, torch.float32, torch.device(GPU), None
    )
    assert found.device == torch.device(GPU)


@pytest.mark.fix("2523390c2")
def test_the_magnitudes_of_an_adapter_are_moved():
    from diffusers import StableDiffusionPipeline
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(
        nn.Sequential(nn.Linear(4, 4)), LoraConfig(target_modules=["0"], use_dora=True)
    )
    pipeline = SimpleNamespace(unet=model, unet_name="unet")
    StableDiffusionPipeline.set_lora_device(pipeline, ["default"], torch.device(GPU))
    magnitudes = model.base_model.model[0].lora_magnitude_vector["default"]
    assert magnitudes.device == torch.device(GPU)
