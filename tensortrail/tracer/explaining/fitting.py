"""What of a known cause fits this program: nothing about a library that it has not loaded."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace

from tensortrail.tracer.explaining.causes import Cause

ABOUT = {
    "accelerate": r"accelerate|align_module_device|device[ _]map|max_memory|offload_folder"
    r"|\bhooks?\b|\boffload(?:ed|s|ing|er)?\b",
    "diffusers": r"diffusers|\bvae\b|\b[Pp]ipelines?\b|enable_\w+_offload|group_offload",
    "transformers": r"transformers|from_pretrained|save_pretrained|model\.device"
    r"|_tied_weights_keys",
    "peft": r"PEFT|LoRA",
    "deepspeed": r"DeepSpeed|ZeRO",
    "torch_tensorrt": r"TensorRT|move_to_device_pass|compile call",
    "transformer_engine": r"TransformerEngine|Transformer Engine",
    "torchao": r"torchao",
    "bitsandbytes": r"bitsandbytes",
    "torch.distributed.fsdp": r"FSDP|fully_shard",
}
"""Words that only make sense to who uses the library."""
MAY_OFFLOAD = ("accelerate", "diffusers", "torch_tensorrt", "deepspeed", "torch.distributed.fsdp")
MODULES = {
    "pytorch/pytorch": "torch",
    "pytorch/TensorRT": "torch_tensorrt",
    "pytorch/ao": "torchao",
    "NVIDIA/TransformerEngine": "transformer_engine",
    "deepspeedai/DeepSpeed": "deepspeed",
}
"""Projects whose module has another name."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def loaded(module: str) -> bool:
    return module in sys.modules


def fitting(cause: Cause, is_loaded: Callable[[str], bool] = loaded) -> Cause | None:
    """The cause with the sentences and references that fit; None if nothing does."""
    text = {"cause": cause.cause, "advice": cause.advice}
    kept = {
        name: " ".join(each for each in _SENTENCE.split(value) if _fits(each, is_loaded))
        for name, value in text.items()
    }
    if not kept["cause"]:
        return None
    see = tuple(each for each in cause.see if _is_of(each, is_loaded))
    return replace(cause, cause=kept["cause"], advice=kept["advice"], see=see)


def _fits(sentence: str, is_loaded: Callable[[str], bool]) -> bool:
    for library, words in ABOUT.items():
        others = MAY_OFFLOAD if library == "accelerate" else ()
        if re.search(words, sentence) and not any(map(is_loaded, (library, *others))):
            return False
    return True


def _is_of(reference: str, is_loaded: Callable[[str], bool]) -> bool:
    """Whether the issue is one of a library that is loaded."""
    project = reference.partition("#")[0]
    name = project.rpartition("/")[2].replace("-", "_").lower()
    return is_loaded(MODULES.get(project, name))
