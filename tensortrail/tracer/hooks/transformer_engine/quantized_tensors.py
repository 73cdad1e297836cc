"""TransformerEngine's quantized tensors do not say what they are made of; this says it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import SILENT
from tensortrail.tracer.noticing.wrapper_classes import overrides
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "transformer_engine.pytorch.tensor"


def install(recorder: Recorder, patches: Patches) -> None:
    from importlib import import_module

    module = import_module("transformer_engine.pytorch.quantized_tensor")
    quantized: type = module.QuantizedTensor
    SILENT[quantized] = parts
    recorder.at_close.append(lambda: SILENT.__delitem__(quantized))
    patches.wrap(quantized, "cpu", _moving(recorder))
    owners = (overrides(kind, "untyped_storage") for kind in _with_subclasses(quantized))
    for owner in dict.fromkeys(each for each in owners if each is not None):
        recorder.wrappers.overridden(owner)


def _moving(recorder: Recorder) -> Around:
    """A quantized tensor has a `cpu()` of its own, which no mode sees."""

    def around(original: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        moved = original(tensor, *args, **kwargs)
        if type(moved) is not type(tensor):
            recorder.guarded(_came_plain, tensor, moved)
        return moved

    return around


def _came_plain(recorder: Recorder, tensor: Any, moved: torch.Tensor) -> None:
    recorder.wrappers.answered("Tensor.cpu", tensor, moved, {"device": moved.device})


def parts(tensor: Any) -> list[str]:
    """Data, scales and transposed copies, as far as this one has them."""
    return [name for name, each in vars(tensor).items() if isinstance(each, torch.Tensor)]


def _with_subclasses(kind: type) -> Iterator[type]:
    yield kind
    below: type
    for below in kind.__subclasses__():
        yield from _with_subclasses(below)
