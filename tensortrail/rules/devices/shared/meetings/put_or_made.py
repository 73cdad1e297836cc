"""Calls that put a tensor on a device, or make a layer: functions in which the two may meet."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES
from tensortrail.rules.shared.dtypes import is_cast
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.view import Module

LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d", "Embedding", "LayerNorm")


def placed(module: Module) -> Iterator[ast.Call]:
    """Calls that put a tensor on a device."""
    yield from (each for each in module.calls(*TO_DEVICE) if not is_cast(module, each))
    for call in module.calls(*FACTORIES):
        if any(each.arg == "device" for each in call.keywords):
            yield call
    for call in module.calls(*LAYERS, "Resample", "Spectrogram", "MelSpectrogram"):
        function = module.function_of(call)
        if function is not None and not sets_up(function):
            yield call
