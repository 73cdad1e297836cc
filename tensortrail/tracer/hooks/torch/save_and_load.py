"""torch.save, torch.load and state dicts write and read tensors; this notes what, and where."""

from __future__ import annotations

import itertools
import os
import pickle
import threading
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import MayStop, Recorder
from tensortrail.tracer.hooks.shared.own_state import OwnState
from tensortrail.tracer.hooks.shared.replaced_weights import Held
from tensortrail.tracer.hooks.shared.safe_loads import runs_only_torch, with_modes_aside
from tensortrail.tracer.hooks.shared.safe_saves import saves_only_plain
from tensortrail.tracer.hooks.shared.unused_scales import unused_scales
from tensortrail.tracer.identity.module_tensors import owned, parts, slots_of
from tensortrail.tracer.identity.object_attributes import attributes_of
from tensortrail.tracer.identity.storages import PLAIN, Entry
from tensortrail.tracer.noticing.loads import Load
from tensortrail.tracer.noticing.written_checkpoints import writing
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.patching.patches import Around, Patches
from tensortrail.tracer.watching.mode import TrailMode

LIBRARY = "torch"
DEEPEST = 12
MOST_TENSORS, MOST_OBJECTS, MOST_TOLD = 100_000, 10_000, 50
LONGEST, NO_DEVICE = 20_000, "Attempting to deserialize object on"
"""Characters of a message that lists keys."""
HOLDERS = (torch.Tensor, dict, list, tuple, set)
"""What every loader knows, or what is in them is told by itself."""


class Within(threading.local):
    """Whether the running thread is in a checkpoint that was told as a whole: its pieces go
    through `torch.save` and `torch.load`."""

    depth = 0

    def around(self, original: Any, *args: Any, **kwargs: Any) -> Any:
        self.depth += 1
        try:
            return original(*args, **kwargs)
        finally:
            self.depth -= 1


WITHIN = Within()


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(torch, "save", saving(recorder, "torch.save"), everywhere=True)
    patches.wrap(torch, "load", loading(recorder, "torch.load"), everywhere=True)
    own = OwnState()
    patches.wrap(Module, "state_dict", _state_dict(recorder, own))
    patches.wrap(Module, "load_state_dict", _load_state_dict(recorder, own))


def saving(recorder: Recorder, op: str, what: int = 0, where: int = 1) -> Around:
    """Around a writer whose argument `what` holds the tensors and `where` names the file."""

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if WITHIN.depth:
            return original(*args, **kwargs)
        data = args[what] if len(args) > what else _first(kwargs, "obj", "tensors", "model")
        path = args[where] if len(args) > where else _first(kwargs, "f", "filename")
        with recorder.phases.within("checkpoint"), writing(recorder, path_of(path), op):
            empty = recorder.guarded(note_saved, data, path, op)
            if recorder.may_stop is not None and op == "torch.save":
                _ask(recorder, recorder.may_stop, path_of(path), bool(empty))
            plain = op == "torch.save" and recorder.guarded(
                saves_only_plain, data, path, args, kwargs
            )
            try:
                with stepped_aside(TrailMode) if plain else nullcontext():
                    return original(*args, **kwargs)
            except (RuntimeError, ValueError) as error:
                recorder.guarded(_refused, data, path, op, error)
                raise

    return around


def _refused(recorder: Recorder, data: Any, path: Any, op: str, error: Exception) -> None:
    facts = {
        "save refused": str(error)[:LONGEST],
        "path": path_of(path),
        "views": list(itertools.islice(_views(data), MOST_TOLD)),
    }
    recorder.note(Did.HOOK, op=op, facts=facts)


def _views(data: Any) -> Iterator[str]:
    """The keys of plain tensors whose elements are not one block in their order."""
    for key, tensor in tensors_below(data):
        if type(tensor) in PLAIN and not tensor.is_contiguous():
            yield key


def _ask(recorder: Recorder, stop: MayStop, place: str, empty: bool) -> None:
    """`torch.save` truncates the file before it writes."""
    if place in recorder.mapped:
        stop.ask("STO206")
    if empty and os.path.exists(place):
        stop.ask("SHD405", "hook")


def note_saved(recorder: Recorder, data: Any, path: Any, op: str) -> int:
    """Say what a writer gets, before it writes: it may not come back. Gives how many of the
    tensors have no data."""
    place = path_of(path)
    seen = empty = 0
    site = recorder.site_here()
    for key, tensor in tensors_below(data, in_objects=True):
        entry = recorder.storages.entry(tensor)
        if entry is None or (seen := seen + 1) > MOST_TENSORS:
            continue
        if entry.name and recorder.fresh_memory.is_fresh(entry):
            recorder.fresh_memory.read(entry, op)
        if isinstance(data, (dict, Module)) and not entry.name:
            recorder.storages.name(entry, key)
        with torch._C.DisableTorchFunction():
            logical = tensor.numel() * tensor.element_size()
        facts = {"path": place, "key": key, "logical": logical}
        facts["device"] = entry.device
        empty += entry.device == "meta"
        recorder.note(Did.SAVE, entry, op=op, facts=facts, site=site)
    facts = {"path": place, "count": seen, "objects": objects_in(data)}
    recorder.note(Did.SAVE, op=op, facts=facts)
    recorder.writer.flush()
    return empty


def objects_in(data: Any) -> dict[str, str]:
    """Which classes of its own a file gets, each with the key it lies under."""
    each = dict.items(data) if issubclass(type(data), dict) else [("", data)]
    kinds = ((type(value), key) for key, value in each if not issubclass(type(value), HOLDERS))
    own = ((kind, key) for kind, key in kinds if kind.__module__ != "builtins")
    return {f"{kind.__module__}.{kind.__qualname__}": str(key) for kind, key in own}


def loading(recorder: Recorder, op: str) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if WITHIN.depth:
            return original(*args, **kwargs)
        with recorder.phases.within("load"):
            try:
                if op == "torch.load" and runs_only_torch(recorder, args, kwargs):
                    result = with_modes_aside(recorder, original, *args, **kwargs)
                else:
                    result = original(*args, **kwargs)
            except (RuntimeError, pickle.UnpicklingError) as error:
                recorder.guarded(_load_refused, args, kwargs, op, error)
                raise
            path = args[0] if args else _first(kwargs, "f", "filename")
            mapped = bool(kwargs.get("mmap")) or op.startswith("safetensors")
            recorder.guarded(note_loaded, result, path, op, mapped)
            return result

    return around


def _load_refused(recorder: Recorder, args: Any, kwargs: Any, op: str, error: Exception) -> None:
    """Tensors were to go to a device that is not there, or the file holds other objects."""
    said = str(error)[:LONGEST]
    path = path_of(args[0] if args else kwargs.get("f"))
    if NO_DEVICE in said:
        given = args[1] if len(args) > 1 else kwargs.get("map_location")
        asked = str(given) if type(given) in (str, torch.device) else ""
        told = given is not None
        facts = {"no device": said, "path": path, "asked": asked, "told": told}
        recorder.note(Did.HOOK, op=op, facts=facts)
    elif isinstance(error, pickle.UnpicklingError):
        recorder.note(Did.HOOK, op=op, facts={"no plain file": said, "path": path})


def note_loaded(
    recorder: Recorder,
    data: Any,
    path: Any,
    op: str,
    mapped: bool,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """`more` facts by key, where they are known; other keys were not read then."""
    place = path_of(path)
    if mapped:
        recorder.mapped.add(place)
    site = recorder.site_here()
    for key, tensor in tensors_below(data, in_objects=True):
        known = {} if more is None else more.get(key)
        if known is not None and (entry := recorder.storages.entry(tensor)):
            if not entry.name:
                recorder.storages.name(entry, key)
            facts = {"path": place, "key": key, "mapped": mapped and entry.device == "cpu"}
            recorder.note(Did.LOAD, entry, op=op, facts={**facts, **known}, site=site)
            recorder.loads.gave(entry, place)
    recorder.changed()


def path_of(path: Any) -> str:
    try:
        return os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, os.PathLike)) else ""
    except (TypeError, ValueError):
        return ""


def tensors_below(data: Any, *, in_objects: bool = False) -> Iterator[tuple[str, Any]]:
    """The tensors in nested plain containers and modules, with their dotted keys; those that other
    objects keep too, if that is asked for."""
    yield from _below(data, "", 0, set() if in_objects else None)


def _below(data: Any, key: str, depth: int, seen: set[int] | None) -> Iterator[tuple[str, Any]]:
    kind = type(data)  # `isinstance` asks an object for its class: a proxy would make its object
    if issubclass(kind, torch.Tensor):
        yield key, data
    elif depth > DEEPEST:
        return
    elif issubclass(kind, Module):
        yield from owned(data, key)
    else:
        for name, value in _held(data, kind, seen):
            yield from _below(value, f"{key}.{name}" if key else name, depth + 1, seen)


def _held(data: Any, kind: type, seen: set[int] | None) -> Iterator[tuple[str, Any]]:
    if issubclass(kind, dict):
        yield from ((str(name), value) for name, value in list(dict.items(data)))
    elif kind in (list, tuple):
        yield from ((str(place), value) for place, value in enumerate(data))
    elif seen is not None and id(data) not in seen and len(seen) < MOST_OBJECTS:
        seen.add(id(data))
        yield from attributes_of(data)


def _state_dict(recorder: Recorder, own: OwnState) -> Around:
    def around(original: Any, module: Module, *args: Any, **kwargs: Any) -> Any:
        local = recorder.of_thread
        if local.inside_module:
            return original(module, *args, **kwargs)
        recorder.guarded(_name, module)
        local.inside_module += 1
        try:
            state = original(module, *args, **kwargs)
        finally:
            local.inside_module -= 1
        recorder.guarded(own.taken, module, state)
        recorder.unread_loads.asked(module)
        return state

    return around


def _load_state_dict(recorder: Recorder, own: OwnState) -> Around:
    def around(original: Any, module: Module, *args: Any, **kwargs: Any) -> Any:
        recorder.guarded(_name, module)
        assigns = bool(kwargs.get("assign") or (len(args) > 2 and args[2]))
        before = recorder.guarded(Held, module) if assigns else None
        with recorder.phases.within("load", {"module": type(module).__name__}):
            try:
                result = original(module, *args, **kwargs)
            except RuntimeError as error:
                given = args[0] if args else kwargs.get("state_dict")
                recorder.guarded(_not_loaded, error, module, given)
                raise
            if before:
                recorder.guarded(before.assigned, module)
        given = args[0] if args else kwargs.get("state_dict")
        recorder.guarded(own.loaded, module, given)
        if recorder.unread_loads.some and isinstance(given, Mapping):
            recorder.guarded(lambda of: of.unread_loads.given(given.values()))
        recorder.guarded(_loaded, module, result, given)
        if before:
            recorder.guarded(before.untied, module)
        return result

    return around


def _name(recorder: Recorder, module: Module) -> None:
    recorder.name_module(module)


def _not_loaded(recorder: Recorder, error: RuntimeError, module: Module, given: Any) -> None:
    values = given if isinstance(given, Mapping) else {}
    facts = {
        "type": type(error).__name__,
        "message": str(error)[:LONGEST],
        "operands": [],
        "inside": inside(module, values),
        "file": recorder.loads.file_of(values.values()),
        "wrappers": list(_wrappers(module, values)),
        "tied": _tied(module, values),
    }
    recorder.note(Did.ERROR, op="Module.load_state_dict", facts=facts)


def _wrappers(module: Module, given: Mapping[Any, Any]) -> Iterator[list[str]]:
    """The keys, with their classes, of wrapper tensors that plain parameters were to take."""
    for name, own in itertools.islice(owned(module, ""), MOST_OBJECTS):
        value = given.get(name)
        if isinstance(value, torch.Tensor) and type(value) not in PLAIN and type(own) in PLAIN:
            yield [name, type(value).__name__]


def _tied(module: Module, given: Mapping[Any, Any]) -> dict[str, str]:
    """The names that are missing, each with another name of the same weight, which is there; none
    if something else is missing as well."""
    own = dict(itertools.islice(owned(module, ""), MOST_OBJECTS))
    there = {id(tensor): name for name, tensor in own.items() if name in given}
    missing = [name for name in own if name not in given]
    tied = {name: there[id(own[name])] for name in missing if id(own[name]) in there}
    return tied if len(tied) == len(missing) else {}


def inside(module: Module, given: Mapping[Any, Any]) -> list[str]:
    """The keys under which the state dict itself lies in what was given."""
    names = dict(module.named_parameters()).keys()
    for key, value in list(given.items()):
        if type(key) is str and isinstance(value, Mapping) and names & set(value):
            return [key]
    return []


def _entries(recorder: Recorder, module: Module) -> dict[str, Entry]:
    found = ((name, recorder.storages.entry(tensor)) for name, tensor in owned(module, ""))
    return {name: entry for name, entry in found if entry is not None}


def _loaded(recorder: Recorder, module: Module, result: Any, given: Any) -> None:
    """`assign=True` puts other tensors in. What no state dict has is as it was before."""
    modules = parts(module)
    root = recorder.models.of(module)
    recorder.name_tensors((name, held[key]) for name, held, key in slots_of(modules, root))
    values = given if isinstance(given, Mapping) else {}
    missing = set(getattr(result, "missing_keys", ()))
    for name, entry in (_entries(recorder, module) if missing else {}).items():
        if name in missing and entry.device == "meta":
            facts = {"said": "not in the state dict that was loaded", "missing": name}
            recorder.note(Did.HOOK, entry, op="Module.load_state_dict", facts=facts)
    for prefix, each in modules:
        for tensors in (each._parameters, each._buffers):
            for name, tensor in tensors.items():
                key = f"{prefix}.{name}" if prefix else name
                if key not in missing and name not in each._non_persistent_buffers_set:
                    recorder.loads.given(tensor, values.get(key))
    unused = list(getattr(result, "unexpected_keys", ()))
    if missing or unused:
        file = recorder.loads.file_of(values.values())
        taken = [key for key in values if key not in set(unused)]
        scales = unused_scales(unused, taken, lambda key: dtype_name(values[key]))
        load = Load("Module.load_state_dict", module, missing, unused, file, scales)
        recorder.loads.ended(load)


def dtype_name(value: Any) -> str:
    return str(getattr(value, "dtype", ""))[6:]


def _first(kwargs: dict[str, Any], *names: str) -> Any:
    return next((kwargs[name] for name in names if name in kwargs), None)
