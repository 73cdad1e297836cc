"""diffusers' group offloading brings blocks or leaves of a model to the device by turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.left_behind import note_held
from tensortrail.tracer.hooks.shared.looking import looking_before
from tensortrail.tracer.hooks.shared.lost_writes import Brought, Written
from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.onload_hooks import Bringer, device_name
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "diffusers.hooks.group_offloading"
GROUPED = "group_offloading"
HOOK = "diffusers.GroupOffloadingHook"


def install(recorder: Recorder, patches: Patches) -> None:
    import diffusers.hooks.group_offloading as library

    written = Written(recorder)
    patches.wrap(library, "apply_group_offloading", _applying(recorder), everywhere=True)
    patches.wrap(library.HookRegistry, "register_hook", looking_before(recorder, _adds))
    patches.wrap(library.HookRegistry, "remove_hook", looking_before(recorder, _removes))
    patches.wrap(library.ModuleGroup, "onload_", _onloading(recorder, written))
    patches.wrap(library.ModuleGroup, "offload_", _offloading(recorder, written))
    recorder.onload_hooks.learn(bringers)


def bringers(module: Any) -> Iterator[Bringer]:
    """What a group that this module belongs to brings."""
    registry = vars(module).get("_diffusers_hook")
    hook = registry.hooks.get(GROUPED) if registry is not None else None
    if (group := getattr(hook, "group", None)) is not None:
        file = getattr(group, "safetensors_file_path", "")
        yield Bringer(
            HOOK, device_name(group.onload_device), True, lambda key: file, group.onload_leader
        )


def _applying(recorder: Recorder) -> Around:
    def around(original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
        with recorder.phases.within("apply_group_offloading"), recorder.onload_hooks.within(module):
            recorder.guarded(lambda _: recorder.name_module(module))
            return original(module, *args, **kwargs)

    return around


def _adds(recorder: Recorder, registry: Any, hook: Any, name: str) -> None:
    if name == GROUPED:
        recorder.onload_hooks.put(registry._module_ref)


def _removes(recorder: Recorder, registry: Any, name: str, *_: Any, **__: Any) -> None:
    if name == GROUPED:
        recorder.onload_hooks.taken(registry._module_ref, recorder.user_here())


def _onloading(recorder: Recorder, written: Written) -> Around:
    def around(original: Any, group: Any) -> Any:
        with recorder.acts(f"ModuleGroup.onload_ of {_shown(recorder, group)}"):
            original(group)
        if _keeps_its_own(group):
            recorder.guarded(lambda _: written.came(_brought(recorder, group)))
        return None

    return around


def _offloading(recorder: Recorder, written: Written) -> Around:
    def around(original: Any, group: Any) -> Any:
        before = recorder.guarded(lambda _: _leaving(recorder, group, written)) or []
        shown = _shown(recorder, group)
        with recorder.acts(f"ModuleGroup.offload_ of {shown}"):
            original(group)
        recorder.guarded(lambda _: _left(recorder, group, shown, before))
        return None

    return around


def _leaving(recorder: Recorder, group: Any, written: Written) -> list[Entry]:
    brought = list(_brought(recorder, group))
    if _keeps_its_own(group):
        written.goes(brought, f"{HOOK}.post_forward")
    return [each.entry for each in brought]


def _left(recorder: Recorder, group: Any, shown: str, before: list[Entry]) -> None:
    after = [*_brought(recorder, group)]
    note_held(recorder, shown, before, [each.entry for each in after], f"{HOOK}.post_forward")
    # Their values lie in the file: nobody means to write into what is left in memory.
    recorder.fresh_memory.given(each.tensor for each in after if each.kept)


def _keeps_its_own(group: Any) -> bool:
    """What was written into the weights is not written back: they are replaced by copies made
    before. Without a stream and a file they are moved as they are."""
    return group.stream is not None or bool(group.offload_to_disk_path)


def _brought(recorder: Recorder, group: Any) -> Iterator[Brought]:
    kept = getattr(group, "safetensors_file_path", "") if group.offload_to_disk_path else ""
    tensors = [tensor for module in group.modules for _, tensor in owned(module)]
    for tensor in (*tensors, *group.parameters, *group.buffers):
        entry = recorder.storages.entry(tensor)
        if entry is not None:
            name = entry.name or f"a weight of {_shown(recorder, group)}"
            yield Brought(name, name.rpartition(".")[2], tensor, entry, kept)


def _shown(recorder: Recorder, group: Any) -> str:
    first = group.onload_leader or next(iter(group.modules), None)
    return recorder.onload_hooks.shown(first) if first is not None else "parameters"
