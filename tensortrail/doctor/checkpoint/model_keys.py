"""Compares stored names and shapes with the model of a configuration, built on meta.

The comparison is the library's own: `from_pretrained` of transformers is given tensors without
values, made from the headers. Its conversion mapping, ties and ignored keys apply; nothing is read
from the weight files, and no code of the checkpoint is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from tensortrail.doctor.library_models import NoModel, class_of, quietly, settings_of
from tensortrail.rules.checkpoint import (
    ADAPTER_CONFIG,
    Checkpoint,
    Format,
    ModelComparison,
    WeightFile,
)
from tensortrail.rules.shared.wrapped_names import without_wrapper

OWN = "own"
_INTEGERS = {"I64": "int64", "I32": "int32", "BOOL": "bool", "int64": "int64", "bool": "bool"}


class CannotCompare(Exception):
    """There is no model to compare with: why."""


def compare(checkpoint: Checkpoint, config: str) -> ModelComparison:
    """`config`: a configuration file or its folder, or `own`: the one beside the weights."""
    if find_spec("transformers") is None or find_spec("torch") is None:
        raise CannotCompare("transformers is not installed here")
    if ADAPTER_CONFIG in checkpoint.names:
        raise CannotCompare("an adapter holds a part of a model")
    files = _loaded(checkpoint)
    if not files or any(file.flaws or not file.whole for file in files):
        raise CannotCompare("there are no weight files that can be read whole")
    shapes = {each.name: each for file in files for each in file.tensors.values()}
    folder = checkpoint.path if not checkpoint.single else os.path.dirname(checkpoint.path) or "."
    try:
        with quietly():
            return _compared(folder if config == OWN else config, shapes, files[0].path)
    except NoModel as error:
        raise CannotCompare(str(error)) from error


def _loaded(checkpoint: Checkpoint) -> list[WeightFile]:
    """The files that `from_pretrained` takes: one that is alone before shards."""
    if checkpoint.single:
        return list(checkpoint.files)
    for name in ("model.safetensors", "pytorch_model.bin"):
        if found := checkpoint.file(name):
            return [found]
    for index in checkpoint.indexes:
        named = set(index.weight_map.values())
        if shards := [file for file in checkpoint.files if file.name in named]:
            return shards
    return [file for file in checkpoint.files if file.format is Format.SAFETENSORS]


def _compared(config: str, stored: Mapping[str, Any], path: str) -> ModelComparison:
    import torch

    settings = settings_of(config)
    if getattr(settings, "quantization_config", None):
        raise CannotCompare("the weights are quantized, and their names depend on the quantizer")
    kind = class_of(settings)
    names = without_wrapper(stored)
    tensors = {
        name: torch.empty(
            stored[old].shape,
            dtype=getattr(torch, _INTEGERS.get(stored[old].dtype, "float32")),
            device="meta",
        )
        for name, old in names.items()
    }
    try:
        model, told = kind.from_pretrained(
            None,
            config=settings,
            state_dict=tensors,
            device_map="meta",
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    except Exception as error:  # whatever the model class does with such a configuration
        told = str(error).strip().partition("\n")[0]
        raise CannotCompare(f"{kind.__name__} cannot be built: {told}") from error
    mismatched = {
        key: (tuple(one), tuple(two)) for key, one, two in sorted(told["mismatched_keys"])
    }
    return ModelComparison(
        kind.__name__,
        path,
        len(model.state_dict()),
        len(tensors),
        tuple(sorted(told["missing_keys"])),
        tuple(sorted(told["unexpected_keys"])),
        mismatched,
    )
