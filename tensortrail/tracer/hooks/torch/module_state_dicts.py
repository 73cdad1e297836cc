"""Modules give and take state dicts; this notes what is missing, too much or refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import LONGEST, MOST_OBJECTS
from tensortrail.tracer.hooks.shared.own_state import OwnState
from tensortrail.tracer.hooks.shared.replaced_weights import Held
from tensortrail.tracer.hooks.shared.unused_scales import unused_scales
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.module_tensors import owned, parts, slots_of
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.incomplete_loads import Load
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch"
RESIZES = "resize_token_embeddings"
"""What models with a table of tokens can do."""


def install(recorder: Recorder, patches: Patches) -> None:
    own = OwnState()
    patches.wrap(Module, "state_dict", _state_dict(recorder, own))
    patches.wrap(Module, "load_state_dict", _load_state_dict(recorder, own))


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
        "wrapped": list(_wrapped(module, values)),
        "tied": _tied(module, values),
        "resizes": any(hasattr(type(each), RESIZES) for each in module.modules()),
    }
    recorder.note(Did.ERROR, op="Module.load_state_dict", facts=facts)


def _wrappers(module: Module, given: Mapping[Any, Any]) -> Iterator[list[str]]:
    """The keys, with their classes, of wrapper tensors that plain parameters were to take."""
    for name, own in itertools.islice(owned(module, ""), MOST_OBJECTS):
        value = given.get(name)
        if isinstance(value, torch.Tensor) and type(value) not in PLAIN and type(own) in PLAIN:
            yield [name, type(value).__name__]


def _wrapped(module: Module, given: Mapping[Any, Any]) -> Iterator[list[str]]:
    """The keys of plain tensors that wrapper parameters were to take, with the classes of these."""
    for name, own in itertools.islice(owned(module, ""), MOST_OBJECTS):
        value = given.get(name)
        kind = own.__class__  # of a simulated tensor the one that it stands for
        if isinstance(value, torch.Tensor) and value.__class__ in PLAIN and kind not in PLAIN:
            yield [name, kind.__name__]


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
        recorder.incomplete_loads.ended(load)


def dtype_name(value: Any) -> str:
    return str(getattr(value, "dtype", ""))[6:]
