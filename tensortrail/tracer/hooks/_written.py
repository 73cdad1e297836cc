"""Weights written while a hook had brought them: the hook throws what was written away."""

from __future__ import annotations

from typing import Any

import torch

from tensortrail.rules.timeline import Did
from tensortrail.tracer.hooks._offloaded import kept_in, path_of_module, weights_of
from tensortrail.tracer.recorder import Recorder
from tensortrail.tracer.storages import Entry


class Written:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._came: dict[str, tuple[int, int]] = {}
        """Storage and count of writes of each weight when it came."""
        self._told: set[str] = set()

    def came(self, hook: Any, module: Any) -> None:
        for name, key, tensor, entry in self._weights(hook, module):
            if not self._is_original(hook, key, entry):
                self._came[name] = (entry.number, _writes(tensor))

    def goes(self, hook: Any, module: Any, op: str) -> None:
        for name, key, tensor, entry in self._weights(hook, module):
            number, writes = self._came.pop(name, (0, 0))
            if number == entry.number and _writes(tensor) > writes and name not in self._told:
                self._told.add(name)
                kept = kept_in(hook.weights_map, key)
                facts = {
                    "said": f"thrown away as it was written: the hook keeps {kept or 'its own'}",
                    "lost": True,
                    "module": path_of_module(hook.weights_map) or type(module).__name__,
                    "parameter": name,
                    "kept_in": kept,
                }
                self._recorder.note(Did.HOOK, entry, op=op, facts=facts)

    def _weights(self, hook: Any, module: Any) -> Any:
        path = path_of_module(hook.weights_map) or type(module).__name__
        for key, tensor in weights_of(hook, module):
            entry = self._recorder.storages.entry(tensor)
            if entry is not None and entry.device != "meta":
                yield f"{path}.{key}", key, tensor, entry

    def _is_original(self, hook: Any, key: str, entry: Entry) -> bool:
        """The hook handed out its own memory, as it does on the CPU: writes stay."""
        if kept_in(hook.weights_map, key):
            return False
        return self._recorder.storages.known(hook.weights_map[key]) is entry


def _writes(tensor: Any) -> int:
    with torch._C.DisableTorchFunction():
        return 0 if tensor.is_inference() else int(tensor._version)
