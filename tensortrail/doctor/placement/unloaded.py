"""The model of a configuration on meta, each tensor as large as it will be when it is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from tensortrail.doctor.checkpoint.folder import NothingHere, read_checkpoint
from tensortrail.doctor.library_models import NoModel, class_of, settings_of
from tensortrail.rules.checkpoint_files import StoredTensor

_FEWEST = 0.9
"""The part of the stored bytes that must belong to a module of the model."""


class Unloaded(NamedTuple):
    model: Any
    sizes_from: str
    """What the sizes are those of: a type of elements, or the stored weights."""


def unloaded(path: str, dtype: str = "") -> Unloaded:
    """Raises `NoModel` where the sizes cannot be known."""
    import torch

    settings = settings_of(path)
    kind = class_of(settings)
    given = getattr(settings, "dtype", None) or torch.float32
    chosen = getattr(torch, dtype, None) if dtype else given
    if not isinstance(chosen, torch.dtype):
        raise NoModel(f"{dtype or given} is not a dtype of torch")
    quantized = getattr(settings, "quantization_config", None)
    try:
        with torch.device("meta"):
            model = kind._from_config(settings, dtype=chosen)
        model.tie_weights()
    except Exception as error:  # whatever the model class does with such a configuration
        told = str(error).strip().partition("\n")[0]
        raise NoModel(f"{kind.__name__} cannot be built: {told}") from error
    if not quantized or dtype:
        return Unloaded(model, str(chosen).removeprefix("torch."))
    _take_sizes(model, _stored(path))
    return Unloaded(model, "the quantized weights as they are stored")


def _stored(path: str) -> Mapping[str, StoredTensor]:
    folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
    try:
        files = read_checkpoint(folder).checkpoint.files
    except (NothingHere, OSError):
        files = ()
    found = {name: each for file in files for name, each in file.tensors.items()}
    if not found:
        raise NoModel("the model is quantized, and its weights are not beside the configuration")
    return found


def _take_sizes(model: Any, stored: Mapping[str, StoredTensor]) -> None:
    """Every module gets what is stored for it in place of the parameters it was built with."""
    modules = dict(model.named_modules())
    mine: dict[str, list[StoredTensor]] = {}
    for name, tensor in stored.items():
        path = name.rpartition(".")[0]
        while path and path not in modules:
            path = path.rpartition(".")[0]
        mine.setdefault(path, []).append(tensor)
    whole = sum(each.end - each.begin for each in stored.values())
    found = sum(each.end - each.begin for path in mine if path for each in mine[path])
    if found < whole * _FEWEST:
        raise NoModel("the stored names are not those of the model, so its sizes are not known")
    for path in filter(None, mine):
        _replace(modules[path], path, mine[path])


def _replace(module: Any, path: str, stored: list[StoredTensor]) -> None:
    import torch

    names = {each.name.removeprefix(f"{path}.") for each in stored}
    for name in [name for name, _ in module.named_parameters(recurse=False) if name not in names]:
        del module._parameters[name]
    for each in stored:
        values = torch.empty(each.end - each.begin, dtype=torch.uint8, device="meta")
        name = each.name.removeprefix(f"{path}.").replace(".", "_")
        module._buffers.pop(name, None)
        module._parameters[name] = torch.nn.Parameter(values, requires_grad=False)
