"""The model that a save is planned for, built on meta from a folder or a configuration."""

from __future__ import annotations

import os
from typing import Any

from tensortrail.doctor import library_models
from tensortrail.doctor.checkpoint.folder import NothingHere, read_checkpoint
from tensortrail.doctor.checkpoint.model_keys import loaded_files, on_meta
from tensortrail.doctor.library_models import NoModel
from tensortrail.rules.checkpoint import ADAPTER_CONFIG, Checkpoint

_TYPES = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "U16": "uint16", "I32": "int32",
    "U32": "uint32", "I64": "int64", "U64": "uint64", "F16": "float16", "BF16": "bfloat16",
    "F32": "float32", "F64": "float64", "C64": "complex64", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
}  # fmt: skip
"""The element types of safetensors, as torch calls them."""


def model_of(path: str) -> Any:
    """With the conversions that its stored weights call for, or those of its class."""
    settings = library_models.unquantized(path)
    stored = _stored(path)
    if stored is None:
        return library_models.made(settings)
    shapes = {each.name: each for file in loaded_files(stored) for each in file.tensors.values()}
    types = {each.dtype: _TYPES.get(each.dtype, each.dtype) for each in shapes.values()}
    model, told = library_models.loaded(settings, on_meta(shapes, types))
    if told["missing_keys"] and len(told["missing_keys"]) * 2 > len(model.state_dict()):
        raise NoModel("most weights of the model are not there: `tensortrail doctor --model own`")
    return model


def _stored(path: str) -> Checkpoint | None:
    """The weights in the folder, None if there are none."""
    if not os.path.isdir(path):
        return None
    try:
        found = read_checkpoint(path).checkpoint
    except NothingHere:
        return None
    if ADAPTER_CONFIG in found.names:
        raise NoModel("an adapter holds a part of a model")
    return found if found.files else None
