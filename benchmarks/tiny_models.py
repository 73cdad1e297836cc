"""Small models of several libraries, each with inputs it takes, and how they are run: what
`places_agree.py` and `fresh_rehearsed.py` share."""

from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from small_layers import layers
from torch.utils._pytree import tree_map_only

from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

MOST_PARAMETERS = 40_000_000
TINY = {
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "intermediate_size": 48,
    "d_ff": 48, "ffn_dim": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "n_inner": 48,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2, "encoder_layers": 2,
    "decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 4,
    "vocab_size": 99, "max_position_embeddings": 64, "n_positions": 64, "head_dim": 8,
    "image_size": 32, "patch_size": 16, "num_local_experts": 2, "num_experts": 2, "d_kv": 8,
    "embedding_size": 32, "pad_token_id": 0, "rotary_dim": 8, "num_decoder_layers": 2,
    "num_experts_per_tok": 2, "moe_intermediate_size": 16, "projection_dim": 32,
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8,
    "v_head_dim": 8, "eos_token_id": 1, "bos_token_id": 2, "num_encoder_layers": 2,
}  # fmt: skip


PARTS = ("/transformers/models/", "/transformers/masking_utils", "/transformers/modeling_rope",
         "/diffusers/models/", "/timm/", "/torch/nn/modules/")  # fmt: skip
"""Of interest are files whose path holds one of these."""


class TooLarge(Exception):
    """The model stays large with the settings it is given."""


@dataclass(frozen=True)
class Subject:
    name: str
    build: Callable[[], tuple[torch.nn.Module, dict[str, Any]]]
    """The model, and what its `forward` takes."""

    def on_gpu(self) -> tuple[torch.nn.Module, dict[str, Any]]:
        model, inputs = self.build()
        model = model.eval().to("cuda")
        return model, tree_map_only(torch.Tensor, lambda each: each.to("cuda"), inputs)


def arguments(parser: argparse.ArgumentParser, seconds: float) -> None:
    """Those of every script that runs these models."""
    parser.add_argument("--only", default="", help="models whose name contains this word")
    parser.add_argument("--seconds", type=float, default=seconds, help="for all of them")
    parser.add_argument("--beside", nargs="*", default=[], help="folders of more packages")


def chosen_subjects(options: argparse.Namespace) -> Iterator[Subject]:
    sys.path[1:1] = options.beside
    return (each for each in subjects() if options.only in each.name)


@contextmanager
def on_a_simulated_gpu() -> Iterator[None]:
    torch.manual_seed(0)
    with Rehearsal(parse_spec("cuda")), torch.no_grad():
        yield


def lines_run(subject: Subject) -> set[tuple[str, int]]:
    """Lines of the files of interest that ran from the building of the model to its answer."""
    ran: set[tuple[str, int]] = set()

    def traced(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        if not any(part in path for part in PARTS):
            return None
        ran.add((path, frame.f_lineno))
        return traced

    run(subject, traced)
    return ran


def run(subject: Subject, traced: Callable[..., Any] | None) -> None:
    with on_a_simulated_gpu():
        sys.settrace(traced)
        try:
            model, inputs = subject.on_gpu()
            model(**inputs)
        finally:
            sys.settrace(None)


def subjects() -> Iterator[Subject]:
    _without_its_extension()
    import torch._dynamo  # noqa: F401 - so that no model pays for it
    import transformers.modeling_utils  # noqa: F401

    yield from _of_torch()
    yield from _of_diffusers()
    yield from _of_transformers()
    yield from _of_timm()
    yield from _of_torchvision()


# --- torch -----------------------------------------------------------------------------------
def _of_torch() -> Iterator[Subject]:
    from torch import nn

    rows, images = torch.rand(2, 5, 8), torch.rand(1, 4, 8, 8)
    made: list[tuple[Callable[[], nn.Module], dict[str, Any]]] = [
        (lambda: nn.MultiheadAttention(8, 2, batch_first=True, add_zero_attn=True),
         {"query": rows, "key": rows, "value": rows}),
        (lambda: nn.MultiheadAttention(8, 2, add_bias_kv=True),
         {"query": rows, "key": rows, "value": rows}),
        (lambda: nn.Transformer(8, 2, 1, 1, 16, batch_first=True), {"src": rows, "tgt": rows}),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16), {"src": rows}),
        (lambda: nn.LSTM(8, 8), {"input": rows}),
        (lambda: nn.GRU(8, 8), {"input": rows}),
        (lambda: nn.RNN(8, 8), {"input": rows}),
        (lambda: nn.LSTMCell(8, 8), {"input": rows[0]}),
        (lambda: nn.GRUCell(8, 8), {"input": rows[0]}),
        (lambda: nn.BatchNorm2d(4), {"input": images}),
        (lambda: nn.InstanceNorm2d(4), {"input": images}),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10]),
         {"input_": rows[0], "target_": torch.tensor([1, 2, 5, 12, 3])}),
        (lambda: nn.ConvTranspose2d(4, 4, 3), {"input": images}),
    ]  # fmt: skip
    for build, inputs in made:
        yield Subject(f"torch {type(build()).__name__}", lambda b=build, i=inputs: (b(), i))
    for name, made_with, given in layers():
        yield Subject(f"torch {name}", lambda n=name, m=made_with, g=given: _layer(n, m, g))


def _layer(
    name: str, made_with: tuple[Any, ...], given: tuple[torch.Tensor, ...]
) -> tuple[torch.nn.Module, dict[str, Any]]:
    layer = getattr(torch.nn, name)(*made_with)
    layer(*given)  # a lazy one has parameters after that
    return layer, dict(zip(inspect.signature(layer.forward).parameters, given, strict=False))


# --- diffusers -------------------------------------------------------------------------------
def _of_diffusers() -> Iterator[Subject]:
    noise, step = torch.rand(1, 4, 8, 8), torch.tensor([3])
    text = torch.rand(1, 5, 16)
    latent = {"sample": noise, "timestep": step}
    blocks = {"block_out_channels": (8, 16), "norm_num_groups": 4, "layers_per_block": 1}
    unet = {"sample_size": 8, "in_channels": 4, "out_channels": 4, **blocks}
    cross = {**unet, "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
             "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"), "cross_attention_dim": 16,
             "attention_head_dim": 4}  # fmt: skip
    heads = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 1}
    image = {"sample": torch.rand(1, 3, 16, 16)}
    table: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("UNet2DModel", {**unet, "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
                         "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
                         "attention_head_dim": 4}, latent),
        ("UNet2DConditionModel", cross, {**latent, "encoder_hidden_states": text}),
        ("UNet2DConditionModel", {**cross, "class_embed_type": "timestep"},
         {**latent, "encoder_hidden_states": text, "class_labels": step}),
        ("ControlNetModel", {"in_channels": 4, **blocks, "cross_attention_dim": 16,
                             "attention_head_dim": 4,
                             "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
                             "conditioning_embedding_out_channels": (8, 8)},
         {**latent, "encoder_hidden_states": text, "controlnet_cond": torch.rand(1, 3, 16, 16)}),
        ("AutoencoderKL", {**blocks, "down_block_types": ("DownEncoderBlock2D",) * 2,
                           "up_block_types": ("UpDecoderBlock2D",) * 2, "latent_channels": 4},
         image),
        ("AsymmetricAutoencoderKL",
         {"down_block_types": ("DownEncoderBlock2D",), "down_block_out_channels": (8,),
          "up_block_types": ("UpDecoderBlock2D",), "up_block_out_channels": (8,),
          "norm_num_groups": 4}, image),
        ("AutoencoderTiny", {"encoder_block_out_channels": (8, 8), "num_encoder_blocks": (1, 1),
                             "decoder_block_out_channels": (8, 8), "num_decoder_blocks": (1, 1)},
         image),
        ("VQModel", {"block_out_channels": (8,), "norm_num_groups": 4, "latent_channels": 3},
         image),
        ("DiTTransformer2DModel", {**heads, "in_channels": 4, "sample_size": 8,
                                   "norm_num_groups": 4},
         {"hidden_states": noise, "timestep": step, "class_labels": torch.tensor([1])}),
        ("PixArtTransformer2DModel", {**heads, "in_channels": 4, "sample_size": 8,
                                      "cross_attention_dim": 16, "caption_channels": 16,
                                      "use_additional_conditions": False},
         {"hidden_states": noise, "encoder_hidden_states": text, "timestep": step,
          "added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}),
        ("SD3Transformer2DModel", {**heads, "in_channels": 4, "sample_size": 8,
                                   "caption_projection_dim": 16, "joint_attention_dim": 16,
                                   "pooled_projection_dim": 16, "out_channels": 4},
         {"hidden_states": noise, "encoder_hidden_states": text, "timestep": step,
          "pooled_projections": text[:, 0]}),
        ("FluxTransformer2DModel", {"in_channels": 4, "num_layers": 1, "num_single_layers": 1,
                                    "attention_head_dim": 16, "num_attention_heads": 2,
                                    "joint_attention_dim": 16, "pooled_projection_dim": 16,
                                    "axes_dims_rope": (4, 4, 8), "guidance_embeds": True},
         {"hidden_states": torch.rand(1, 16, 4), "encoder_hidden_states": text, "timestep": step,
          "pooled_projections": text[:, 0], "img_ids": torch.zeros(16, 3),
          "txt_ids": torch.zeros(5, 3), "guidance": torch.ones(1)}),
        ("AuraFlowTransformer2DModel", {"sample_size": 8, "in_channels": 4, "num_mmdit_layers": 1,
                                        "num_single_dit_layers": 1, "attention_head_dim": 8,
                                        "num_attention_heads": 2, "caption_projection_dim": 16,
                                        "joint_attention_dim": 16, "out_channels": 4,
                                        "pos_embed_max_size": 64},
         {"hidden_states": noise, "encoder_hidden_states": text, "timestep": step}),
        ("SanaTransformer2DModel", {**heads, "in_channels": 4, "out_channels": 4,
                                    "num_cross_attention_heads": 2, "sample_size": 8,
                                    "cross_attention_head_dim": 8, "cross_attention_dim": 16,
                                    "caption_channels": 16, "patch_size": 1},
         {"hidden_states": noise, "encoder_hidden_states": text, "timestep": step}),
        ("LuminaNextDiT2DModel", {"sample_size": 8, "hidden_size": 16, "num_layers": 1,
                                  "num_attention_heads": 2, "num_kv_heads": 2,
                                  "cross_attention_dim": 16, "in_channels": 4},
         {"hidden_states": noise, "encoder_hidden_states": text, "timestep": step,
          "encoder_mask": torch.ones(1, 5), "image_rotary_emb": torch.rand(16, 16, 4),
          "cross_attention_kwargs": {}}),
        ("CogVideoXTransformer3DModel", {**heads, "in_channels": 4, "out_channels": 4,
                                         "text_embed_dim": 16, "time_embed_dim": 8,
                                         "sample_width": 8, "sample_height": 8,
                                         "sample_frames": 5, "max_text_seq_length": 5},
         {"hidden_states": torch.rand(1, 2, 4, 8, 8), "encoder_hidden_states": text,
          "timestep": step}),
        ("LTXVideoTransformer3DModel", {**heads, "in_channels": 4, "out_channels": 4,
                                        "cross_attention_dim": 16, "caption_channels": 16},
         {"hidden_states": torch.rand(1, 16, 4), "encoder_hidden_states": text,
          "timestep": step, "encoder_attention_mask": torch.ones(1, 5), "num_frames": 1,
          "height": 4, "width": 4}),
        ("WanTransformer3DModel", {**heads, "in_channels": 4, "out_channels": 4, "text_dim": 16,
                                   "freq_dim": 8, "ffn_dim": 16, "rope_max_seq_len": 32,
                                   "attention_head_dim": 12},
         {"hidden_states": torch.rand(1, 4, 2, 8, 8), "encoder_hidden_states": text,
          "timestep": step}),
        ("MochiTransformer3DModel", {**heads, "in_channels": 4, "text_embed_dim": 16,
                                     "pooled_projection_dim": 16, "time_embed_dim": 8,
                                     "max_sequence_length": 5},
         {"hidden_states": torch.rand(1, 4, 2, 8, 8), "encoder_hidden_states": text,
          "timestep": step, "encoder_attention_mask": torch.ones(1, 5)}),
        ("PriorTransformer", {**heads, "embedding_dim": 16, "num_embeddings": 5,
                              "additional_embeddings": 4},
         {"hidden_states": torch.rand(1, 16), "timestep": step,
          "proj_embedding": torch.rand(1, 16), "encoder_hidden_states": text}),
        ("UNet3DConditionModel",
         {**unet, "down_block_types": ("CrossAttnDownBlock3D", "DownBlock3D"),
          "up_block_types": ("UpBlock3D", "CrossAttnUpBlock3D"), "cross_attention_dim": 16,
          "attention_head_dim": 4},
         {"sample": torch.rand(1, 4, 2, 8, 8), "timestep": step, "encoder_hidden_states": text}),
        ("StableAudioDiTModel", {**heads, "sample_size": 8, "in_channels": 4,
                                 "num_key_value_attention_heads": 1, "out_channels": 4,
                                 "cross_attention_dim": 16, "time_proj_dim": 8,
                                 "global_states_input_dim": 16, "cross_attention_input_dim": 16},
         {"hidden_states": torch.rand(1, 4, 8), "timestep": step, "encoder_hidden_states": text,
          "global_hidden_states": torch.rand(1, 1, 16)}),
    ]  # fmt: skip
    for name, settings, inputs in table:
        yield Subject(f"diffusers {name}", lambda n=name, s=settings, i=inputs: _diffuser(n, s, i))


def _diffuser(
    name: str, settings: dict[str, Any], inputs: dict[str, Any]
) -> tuple[torch.nn.Module, dict[str, Any]]:
    import diffusers

    return getattr(diffusers, name)(**settings), inputs


# --- transformers ----------------------------------------------------------------------------
def _of_transformers() -> Iterator[Subject]:
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    for name in MODEL_MAPPING_NAMES:
        yield Subject(f"transformers {name}", lambda n=name: _transformer(n))


def _transformer(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    from transformers import AutoConfig, AutoModel

    config = shrunk(AutoConfig.for_model(name))
    with torch.device("meta"):
        count = sum(each.numel() for each in AutoModel.from_config(config).parameters())
    if count > MOST_PARAMETERS:
        raise TooLarge(f"{count:,} parameters")
    model = AutoModel.from_config(config)
    return model, _inputs_of(model)


def shrunk(config: Any) -> Any:
    """The configuration made again with small numbers, those inside of it too."""
    known = inspect.signature(type(config).__init__).parameters
    fields = config.to_dict()
    small: dict[str, Any] = {k: v for k, v in TINY.items() if k in fields or k in known}
    for key in fields:
        inner = getattr(config, key, None)
        if hasattr(inner, "to_dict") and hasattr(inner, "model_type"):
            small[key] = shrunk(inner).to_dict()
    return type(config)(**small)


def _inputs_of(model: Any) -> dict[str, Any]:
    wanted = inspect.signature(model.forward).parameters
    ids = torch.randint(3, 90, (2, 16))
    offers = {
        "input_ids": ids, "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.rand(2, 3, 32, 32), "input_values": torch.rand(2, 4000),
        "input_features": torch.rand(2, 80, 64), "decoder_input_ids": ids[:, :8],
    }  # fmt: skip
    found = {key: value for key, value in offers.items() if key in wanted}
    if "input_ids" not in found:
        found.pop("attention_mask", None)
    return found


# --- timm ------------------------------------------------------------------------------------
def _of_timm() -> Iterator[Subject]:
    try:
        import timm
    except ImportError:
        return
    families: dict[str, str] = {}
    for name in timm.list_models():
        families.setdefault(timm.model_entrypoint(name).__module__, name)
    for name in families.values():
        yield Subject(f"timm {name}", lambda n=name: _image_model(n))


def _image_model(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    import timm

    with torch.device("meta"):
        count = sum(each.numel() for each in timm.create_model(name).parameters())
    if count > MOST_PARAMETERS:
        raise TooLarge(f"{count:,} parameters")
    model = timm.create_model(name)
    return model, {"x": torch.rand(1, *model.default_cfg["input_size"])}


# --- torchvision -----------------------------------------------------------------------------
def _without_its_extension() -> None:
    """torchvision declares fake kernels for two operators that its compiled part defines, which
    a build for CUDA cannot load beside a torch for the CPU."""
    if importlib.util.find_spec("torchvision") is not None:
        for name in ("nms", "qnms"):
            text = f"torchvision::{name}"
            torch.library.define(text, "(Tensor dets, Tensor scores, float limit) -> Tensor")


def _of_torchvision() -> Iterator[Subject]:
    try:
        from torchvision import models
    except ImportError:
        return
    families: dict[str, str] = {}
    for name in models.list_models():
        families.setdefault(models.get_model_builder(name).__module__, name)
    for name in families.values():
        yield Subject(f"torchvision {name}", lambda n=name: _of_vision(n))


def _of_vision(name: str) -> tuple[torch.nn.Module, dict[str, Any]]:
    from torchvision import models

    with torch.device("meta"):
        count = sum(each.numel() for each in models.get_model(name).parameters())
    if count > MOST_PARAMETERS:
        raise TooLarge(f"{count:,} parameters")
    with_backbone = models.get_model_builder(name).__module__.count(".") > 2
    nothing = {"weights_backbone": None} if with_backbone else {}
    model = models.get_model(name, **nothing)
    first = next(iter(inspect.signature(model.forward).parameters))
    return model, {first: torch.rand(1, 3, 224, 224)}
