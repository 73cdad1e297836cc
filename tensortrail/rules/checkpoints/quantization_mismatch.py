from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import are, counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import MODEL_CONFIG, Checkpoint, Part
from tensortrail.rules.checkpoint_files import Format, StoredTensor
from tensortrail.rules.checkpoints._flaws import listed
from tensortrail.rules.checkpoints._torchao import IS_PART

_SCALES = {
    ".qweight": (".scales",),
    ".weight_packed": (".weight_scale", ".weight_global_scale"),
    "_blocks": ("_scales",),
}
"""What packed weights are called, and what one of their scales must be called."""
_OF_FLOATS = (".weight_scale_inv", ".weight_scale")
_OF_BITSANDBYTES = (".SCB", ".absmax")
_PACKING = frozenset(
    ("gptq", "awq", "fp8", "fbgemm_fp8", "compressed-tensors", "mxfp4", "bitsandbytes", "torchao")
)
_BY_TYPE = frozenset(("fp8", "fbgemm_fp8", "compressed-tensors", "bitsandbytes", "modelopt"))
"""Methods whose packed weights keep the name, and are known by their type."""
_OTHER_CONFIGS = frozenset(("hf_quant_config.json", "quantize_config.json", "quant_config.json"))
_CONFIG = "quantization_config"


class QuantizationMismatch(Rule):
    """The configuration and the weights disagree on whether, or how, they are quantized.

    ## What it does
    Reports:

    - packed weights (GPTQ, AWQ, bitsandbytes, compressed-tensors, MXFP4, torchao, 8-bit floats with
      scales) with a `config.json` that has no `quantization_config`;
    - a `quantization_config` of one of these methods where nothing is quantized;
    - packed weights whose scales are missing.

    ## Why is this bad?
    Without the configuration, packed integers are loaded as if they were weights, or are dropped
    as unexpected names. Without its scales, a packed weight cannot be unpacked.

    ## Example
    ```
    $ tensortrail doctor my-model
    warning[CKP865] quantization-mismatch: 'layers.0.q_proj.qweight' is quantized, but config.json
    has no quantization_config
    ```

    ## Fix safety
    No fix is offered: take the configuration that was saved with the weights.

    ## References
    - https://huggingface.co/docs/transformers/quantization/overview
    """

    code = "CKP865"
    name = "quantization-mismatch"
    severity = Severity.WARNING
    reads = Part.CONFIG

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        told = checkpoint.configs[MODEL_CONFIG]
        if any(file.flaws or not file.whole for file in checkpoint.files):
            return
        tensors = {name: each for file in checkpoint.files for name, each in file.tensors.items()}
        packed = [name for name, each in tensors.items() if _is_packed(name, each, tensors)]
        config, method = _quantization(told)
        if method == "torchao" and any(file.format is Format.TORCH for file in checkpoint.files):
            return  # a pickle holds the tensors of torchao whole
        lost = [name for name in packed if _scale_of(name, tensors) == ""]
        lost += _unlike_the_others(packed, tensors) if method in _BY_TYPE else []
        path = os.path.join(checkpoint.path, MODEL_CONFIG)
        if packed and not config and not _OTHER_CONFIGS & checkpoint.names:
            yield self._without_config(path, packed)
        elif method in _PACKING and tensors and not packed:
            yield self._without_packed(path, method, len(tensors))
        elif lost:
            yield self._without_scales(path, lost)

    def _without_config(self, path: str, packed: list[str]) -> Finding:
        return self.finding_in_file(
            path,
            f"{listed(packed)} {are(len(packed))} quantized, but {MODEL_CONFIG} has no {_CONFIG}",
            "use the config.json that was saved with the weights: `hf download REPO config.json`",
            line=1,
            evidence={"expected": _CONFIG, "found": "none"},
        )

    def _without_packed(self, path: str, method: str, plain: int) -> Finding:
        return self.finding_in_file(
            path,
            f"{MODEL_CONFIG} says that the weights are quantized ({method}), but none of them is",
            "remove `quantization_config`, or get the quantized weights",
            line=1,
            evidence={"expected": method, "found": counted(plain, "plain tensor")},
        )

    def _without_scales(self, path: str, lost: list[str]) -> Finding:
        return self.finding_in_file(
            path,
            f"{listed(lost)} {'has' if len(lost) == 1 else 'have'} no scales",
            "get the shard that holds the scales, or quantize and save again",
            line=1,
            severity=Severity.ERROR,
        )


def _is_packed(name: str, tensor: StoredTensor, tensors: Mapping[str, StoredTensor]) -> bool:
    if name.endswith(".weight"):
        stem = name.removesuffix(".weight")
        scaled = any(stem + each in tensors for each in _OF_FLOATS)
        kept = any(stem + each in tensors for each in _OF_BITSANDBYTES)
        kept = kept or any(name + each in tensors for each in _OF_BITSANDBYTES)
        return (scaled and tensor.bits == 8) or kept
    integers = tensor.dtype.lower().startswith(("i", "u"))
    return bool(IS_PART.fullmatch(name)) or (
        integers and any(name.endswith(end) for end in _SCALES)
    )


def _unlike_the_others(packed: list[str], tensors: Mapping[str, StoredTensor]) -> list[str]:
    """Weights without a scale, where those of the same type of 8 bits have one."""
    types = {tensors[name].dtype for name in packed if name.endswith(".weight")}
    return [
        name
        for name, each in tensors.items()
        if name.endswith(".weight") and each.dtype in types and each.bits == 8
        if name not in packed
    ]


def _scale_of(name: str, tensors: Mapping[str, StoredTensor]) -> str | None:
    """The name of its scale; "" if it is not there, None if the weight names none."""
    for end, scales in _SCALES.items():
        if name.endswith(end):
            stem = name.removesuffix(end)
            return next((stem + each for each in scales if stem + each in tensors), "")
    return None


def _quantization(config: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether the configuration speaks of quantization, also of a part, and the method."""
    own = config.get(_CONFIG)
    if isinstance(own, Mapping):
        method = own.get("quant_method")
        return True, method if isinstance(method, str) else ""
    parts = [each for each in config.values() if isinstance(each, Mapping)]
    return "quantization" in config or any(each.get(_CONFIG) for each in parts), ""
