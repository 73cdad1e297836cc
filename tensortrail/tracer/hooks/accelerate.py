"""accelerate's hooks: weights that are elsewhere, and come only while their module runs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from torch.compiler import is_compiling

from tensortrail.rules.timeline import Did
from tensortrail.tracer.hooks._offloaded import kept_in, path_of_module
from tensortrail.tracer.patches import Around, Patches
from tensortrail.tracer.recorder import Recorder

LIBRARY = "accelerate.hooks"
HOOK = "accelerate.AlignDevicesHook"
MOST_TOLD = 2
"""A weight comes and goes at every step: the first times tell how."""


def install(recorder: Recorder, patches: Patches) -> None:
    from accelerate.hooks import AlignDevicesHook
    from accelerate.utils.offload import OffloadedWeightsLoader

    told: Counter[str] = Counter()
    for name, look in (("init_hook", _left), ("pre_forward", _brought), ("post_forward", _left)):
        patches.wrap(AlignDevicesHook, name, _acting(recorder, look, f"{HOOK}.{name}", told))
    patches.wrap(OffloadedWeightsLoader, "__getitem__", _reading(recorder, told))


def _acting(recorder: Recorder, look: Any, op: str, told: Counter[str]) -> Around:
    def around(original: Any, hook: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(hook, module, *args, **kwargs)
        if recorder.active and not is_compiling() and getattr(hook, "offload", False):
            recorder.guarded(look, hook, module, op, told)
        return result

    return around


def _brought(recorder: Recorder, hook: Any, module: Any, op: str, told: Counter[str]) -> None:
    said = f"brought to {hook.execution_device} for the forward of its module"
    _tell(recorder, hook, module, op, told, said)


def _left(recorder: Recorder, hook: Any, module: Any, op: str, told: Counter[str]) -> None:
    said = f"left on meta: it is on {hook.execution_device} only while its module runs"
    _tell(recorder, hook, module, op, told, said)


def _tell(
    recorder: Recorder, hook: Any, module: Any, op: str, told: Counter[str], said: str
) -> None:
    path = path_of_module(hook.weights_map) or type(module).__name__
    whole = bool(getattr(hook, "place_submodules", False))
    for key, tensor in module.named_parameters(recurse=whole):
        entry = recorder.storages.entry(tensor)
        if entry is None:
            continue
        name = f"{path}.{key}"
        recorder.storages.name(entry, name)
        told[f"{op} {name}"] += 1
        if told[f"{op} {name}"] <= MOST_TOLD:
            facts = {"said": said, "module": path, "parameter": name}
            facts |= {"execution_device": str(hook.execution_device)}
            facts["kept_in"] = kept_in(hook.weights_map, key)
            recorder.note(Did.HOOK, entry, op=op, facts=facts)


def _reading(recorder: Recorder, told: Counter[str]) -> Around:
    def around(original: Any, loader: Any, key: str) -> Any:
        tensor = original(loader, key)
        if recorder.active and not is_compiling():
            recorder.guarded(_read, loader, key, tensor, told)
        return tensor

    return around


def _read(recorder: Recorder, loader: Any, key: str, tensor: Any, told: Counter[str]) -> None:
    path = kept_in(loader, key)
    entry = recorder.storages.entry(tensor) if path else None
    if entry is None:
        return
    if not entry.name:
        recorder.storages.name(entry, key)
    told[f"read {key}"] += 1
    if told[f"read {key}"] <= MOST_TOLD:
        facts = {"path": path, "key": key}
        recorder.note(Did.LOAD, entry, op="accelerate.OffloadedWeightsLoader", facts=facts)
