"""accelerate's hooks keep weights elsewhere and bring them only while their module runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.accelerate.offloaded_weights import (
    bringers,
    kept_in,
    knows,
    path_of_module,
    weights_of,
)
from tensortrail.tracer.hooks.shared.left_behind import note_held
from tensortrail.tracer.hooks.shared.looking import looking_after, looking_before
from tensortrail.tracer.hooks.shared.lost_writes import Brought, Written
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.onload_hooks import device_name
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "accelerate.hooks"
HOOK = "accelerate.AlignDevicesHook"
MOST_TOLD = 2
"""A weight comes and goes at every step: the first times tell how."""


def install(recorder: Recorder, patches: Patches) -> None:
    import accelerate.hooks as library
    from accelerate.utils.offload import OffloadedWeightsLoader

    told: Counter[str] = Counter()
    written = Written(recorder)
    align, whole = library.AlignDevicesHook, library.CpuOffload
    patches.wrap(align, "init_hook", _acting(recorder, _Leaving(told)))
    patches.wrap(align, "pre_forward", _acting(recorder, _Bringing(told, written)))
    patches.wrap(align, "post_forward", _acting(recorder, _Leaving(told, written)))
    for owner, name in ((align, "detach_hook"), (whole, "init_hook"), (whole, "pre_forward")):
        patches.wrap(owner, name, _acting(recorder, _Look()))
    patches.wrap(library, "add_hook_to_module", looking_before(recorder, _adds), everywhere=True)
    patches.wrap(
        library, "remove_hook_from_module", looking_before(recorder, _removes), everywhere=True
    )
    patches.wrap(OffloadedWeightsLoader, "__getitem__", _reading(recorder, told))
    recorder.onload_hooks.learn(bringers)


class _Look:
    """Nothing before and nothing after: torch's own functions tell of the moves."""

    def before(self, recorder: Recorder, hook: Any, module: Any) -> list[Entry]:
        return []

    def after(
        self, recorder: Recorder, hook: Any, module: Any, op: str, before: list[Entry]
    ) -> None: ...


class _Bringing(_Look):
    def __init__(self, told: Counter[str], written: Written) -> None:
        self._told, self._written = told, written

    def before(self, recorder: Recorder, hook: Any, module: Any) -> list[Entry]:
        _tell_meta_writes(recorder, hook, module)
        return []

    def after(
        self, recorder: Recorder, hook: Any, module: Any, op: str, before: list[Entry]
    ) -> None:
        said = f"brought to {device_name(hook.execution_device)} for the forward of its module"
        _tell(recorder, hook, module, op, self._told, said)
        brought = list(_brought(recorder, hook, module))
        self._written.lends(brought)
        self._written.came(each for each in brought if not _is_original(recorder, hook, each))


class _Leaving(_Look):
    def __init__(self, told: Counter[str], written: Written | None = None) -> None:
        self._told, self._written = told, written

    def before(self, recorder: Recorder, hook: Any, module: Any) -> list[Entry]:
        if self._written is None:
            return []
        brought = list(_brought(recorder, hook, module))
        self._written.goes(brought, f"{HOOK}.post_forward")
        return [each.entry for each in brought if not _is_original(recorder, hook, each)]

    def after(
        self, recorder: Recorder, hook: Any, module: Any, op: str, before: list[Entry]
    ) -> None:
        device = device_name(hook.execution_device)
        said = f"left on meta: it is on {device} only while its module runs"
        left = _tell(recorder, hook, module, op, self._told, said)
        for each in left:  # what was written before the hook took its values
            recorder.meta_writes.line(each.number)
        if before:
            note_held(recorder, recorder.onload_hooks.shown(module), before, left, op)


def _tell_meta_writes(recorder: Recorder, hook: Any, module: Any) -> None:
    """The hook is about to put its own values into the place of a weight that was changed."""
    path = path_of_module(hook.weights_map) or type(module).__name__
    for key, tensor in weights_of(hook, module):
        entry = recorder.storages.entry(tensor) if tensor.is_meta else None
        line = recorder.meta_writes.line(entry.number) if entry is not None else None
        if line is not None:
            kept = kept_in(hook.weights_map, key)
            facts = {"written on meta": f"{path}.{key}", "kept_in": kept}
            recorder.note_at(line, Did.HOOK, entry, op=f"{HOOK}.pre_forward", facts=facts)


def _brought(recorder: Recorder, hook: Any, module: Any) -> Iterator[Brought]:
    path = path_of_module(hook.weights_map) or type(module).__name__
    for key, tensor in weights_of(hook, module):
        entry = recorder.storages.entry(tensor)
        if entry is not None and entry.device != "meta":
            yield Brought(f"{path}.{key}", key, tensor, entry, kept_in(hook.weights_map, key))


def _is_original(recorder: Recorder, hook: Any, brought: Brought) -> bool:
    """The hook handed out its own memory, as it does on the CPU: writes stay."""
    if brought.kept or not knows(hook.weights_map, brought.key):
        return False
    return recorder.storages.known(hook.weights_map[brought.key]) is brought.entry


def _acting(recorder: Recorder, look: _Look) -> Around:
    def around(original: Any, hook: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        offloads = bool(getattr(hook, "offload", False))
        recorder.guarded(lambda each: each.onload_hooks.met(module, lambda: _path(hook)))
        before: list[Entry] = []
        if offloads:
            before = recorder.guarded(lambda _: look.before(recorder, hook, module)) or []
        act = f"{type(hook).__name__}.{original.__name__}"
        with recorder.acts(f"{act} of {recorder.onload_hooks.shown(module)}"):
            result = original(hook, module, *args, **kwargs)
        if offloads:
            op = f"accelerate.{act}"
            recorder.guarded(lambda _: look.after(recorder, hook, module, op, before))
        return result

    return around


def _tell(
    recorder: Recorder, hook: Any, module: Any, op: str, told: Counter[str], said: str
) -> list[Entry]:
    found = []
    path = path_of_module(hook.weights_map) or type(module).__name__
    for key, tensor in weights_of(hook, module):
        entry = recorder.storages.entry(tensor)
        if entry is None:
            continue
        found.append(entry)
        name = f"{path}.{key}"
        recorder.storages.name(entry, name)
        told[f"{op} {name}"] += 1
        if told[f"{op} {name}"] <= MOST_TOLD:
            facts = {"said": said, "module": path, "parameter": name}
            facts |= {"execution_device": device_name(hook.execution_device)}
            facts["kept_in"] = kept_in(hook.weights_map, key)
            recorder.note(Did.HOOK, entry, op=op, facts=facts)
    return found


def _adds(recorder: Recorder, module: Any, hook: Any, *_: Any, **__: Any) -> None:
    recorder.onload_hooks.put(module, _path(hook))


def _path(hook: Any) -> str:
    weights = getattr(hook, "weights_map", None)
    return path_of_module(weights) if weights is not None else ""


def _removes(recorder: Recorder, module: Any, *_: Any, **__: Any) -> None:
    if "_hf_hook" not in vars(module):
        return
    path = recorder.onload_hooks.shown(module)
    for bringer in bringers(module):
        facts = {"said": f"{bringer.hook} taken off {path}", "module": path}
        recorder.note(Did.HOOK, op="accelerate.remove_hook_from_module", facts=facts)
    recorder.onload_hooks.taken(module, recorder.user_here())


def _reading(recorder: Recorder, told: Counter[str]) -> Around:
    def read(recorder: Recorder, tensor: Any, loader: Any, key: str) -> None:
        _read(recorder, loader, key, tensor, told)

    return looking_after(recorder, read)


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
