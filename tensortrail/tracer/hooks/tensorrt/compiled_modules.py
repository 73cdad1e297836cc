"""Torch-TensorRT compiles, refits and reloads a module, and may move what it was given.

The module is the caller's, and so are its parameters: a call that leaves them on another device
is noted, with what the setting about it said."""

from __future__ import annotations

import inspect
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch_tensorrt"
SETTING = "offload_module_to_cpu"
MUTABLE = "torch_tensorrt.dynamo.runtime._MutableTorchTensorRTModule"
MUTABLE_CLASS = "MutableTorchTensorRTModule"
FREES = "deallocate_module"
PHASES = {
    "compile": "compile", "refit_gm": "compile", "update_refit_condition": "compile",
    "load": "load",
}  # fmt: skip
MOST_STORAGES = 5000
"""Of one call are named: they are few in most models, and the file keeps its size."""

Placed = dict[str, Entry]
"""Parameters and buffers by their path."""
Moves = list[tuple[Entry, Entry]]


@dataclass
class Call:
    """One that has begun and not ended."""

    name: str
    module: Any
    before: Placed
    value: Any = None
    """What the setting said; None where the call does not know it."""
    freed: Moves = field(default_factory=list)
    """Moved by calls inside of this one that only move."""
    told: set[int] = field(default_factory=set)
    """Moved, and told, by calls inside of this one."""


class Open(threading.local):
    def __init__(self) -> None:
        self.calls: list[Call] = []


Asked = Callable[[tuple[Any, ...], Mapping[str, Any]], tuple[Any, Any]]
"""From the arguments of a call: the module that it works on, and what the setting says."""


def install(recorder: Recorder, patches: Patches) -> None:
    calls = Open()

    def watch(owner: Any, name: str, told: str, phase: str, asked: Asked) -> None:
        around = _watching(recorder, calls, told, phase, asked)
        patches.wrap(owner, name, around, everywhere=not isinstance(owner, type))

    for path, name in (("dynamo.utils", FREES), ("dynamo._compiler", "compile"), ("", "compile")):
        owner = sys.modules.get(f"{LIBRARY}.{path}".rstrip("."))
        function = getattr(owner, name, None)
        if function is not None:
            told = name if name == FREES else _called(path, name)
            phase = "offload" if name == FREES else "compile"
            watch(owner, name, told, phase, _of_function(function))
    mutable = getattr(sys.modules.get(MUTABLE), MUTABLE_CLASS, None)
    if mutable is not None:
        patches.wrap(mutable, "__init__", looking_after(recorder, _made))
        for name, phase in PHASES.items():
            watch(mutable, name, name, phase, _of_mutable)


def _made(recorder: Recorder, _: Any, wrapper: Any, *args: Any, **kwargs: Any) -> None:
    """Where the settings of a wrapper were given: what is called on it later does not tell."""
    module, value = _of_mutable((wrapper,), {})
    name = MUTABLE_CLASS
    facts = {
        "said": f"is made with {SETTING} {value}",
        "made": name,
        "value": value,
        "storages": _numbers(_placed(recorder, module).values()),
    }
    recorder.note(Did.HOOK, op=name, facts=facts)


def _called(path: str, name: str) -> str:
    return ".".join(part for part in (LIBRARY, path.partition("._")[0], name) if part)


def _watching(recorder: Recorder, calls: Open, name: str, phase: str, asked: Asked) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        call = recorder.guarded(_begun, name, asked, args, kwargs)
        if call is None:
            return original(*args, **kwargs)
        calls.calls.append(call)
        recorder.phases.begin(phase, {"call": name, SETTING: call.value})
        result = None
        try:
            result = original(*args, **kwargs)
            return result
        finally:
            calls.calls.pop()
            recorder.guarded(_ended, call, calls.calls, result)
            recorder.phases.end()

    return around


def _begun(recorder: Recorder, name: str, asked: Asked, args: Any, kwargs: Any) -> Call:
    module, value = asked(args, kwargs)
    return Call(name, module, _placed(recorder, module), value)


def _ended(recorder: Recorder, call: Call, around: list[Call], result: Any) -> None:
    moves = _moved(call.before, _placed(recorder, call.module))
    if call.module is None:
        call.module, call.value = _of_mutable((result,), {})
        moves = call.freed
    moves = [pair for pair in moves if pair[1].number not in call.told]
    if isinstance(call.module, Module) and moves:
        recorder.name_module(call.module)
    if call.value is None:
        call.value = next((e.value for e in reversed(around) if e.value is not None), None)
    name = around[-1].name if around and call.name == FREES else call.name
    for outer in around:
        if call.name == FREES:
            outer.freed += moves
        else:
            outer.told |= call.told | {new.number for _, new in moves}
    for devices, pairs in _by_devices(moves).items():
        old, new = pairs[0]
        facts = _told_of(call, name, devices, pairs) | _takes((around or [call])[0])
        recorder.note(Did.HOOK, new, old, call.name, facts)


def _told_of(call: Call, name: str, devices: tuple[str, str], moves: Moves) -> dict[str, Any]:
    """What a call moved from one device to another."""
    source, target = devices
    more = f"and {len(moves) - 1} more " if len(moves) > 1 else ""
    return {
        "said": f"{more}went {source} -> {target} inside {call.name}()",
        "library": LIBRARY,
        "call": name,
        "class": type(call.module).__name__,
        "setting": SETTING,
        "value": call.value,
        "from": source,
        "to": target,
        "count": len(moves),
        "bytes": sum(new.described.nbytes for _, new in moves),
        "storages": _numbers(new for _, new in moves),
    }


def _takes(outermost: Call) -> dict[str, str]:
    """What was given the setting: this function, or the class that it is a method of."""
    if outermost.name in PHASES:
        return {"method_of": MUTABLE_CLASS}
    path, _, name = outermost.name.rpartition(".")
    return {"takes": name} if path else {}


def _numbers(entries: Iterable[Entry]) -> list[int]:
    return [entry.number for entry in islice(entries, MOST_STORAGES)]


def _by_devices(moves: Moves) -> dict[tuple[str, str], Moves]:
    found: dict[tuple[str, str], Moves] = defaultdict(list)
    for old, new in moves:
        found[old.device, new.device].append((old, new))
    return found


def _moved(before: Placed, after: Placed) -> Moves:
    """Each storage once: parameters may be tied."""
    found: dict[int, tuple[Entry, Entry]] = {}
    for name, old in before.items():
        new = after.get(name)
        if new is not None and new.device != old.device:
            found.setdefault(new.number, (old, new))
    return list(found.values())


def _placed(recorder: Recorder, module: Any) -> Placed:
    found: Placed = {}
    for name, tensor in _tensors(module):
        if (entry := recorder.storages.entry(tensor)) is not None:
            found[name] = entry
    return found


def _tensors(module: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(module, Module):
        yield from chain(Module.named_parameters(module), Module.named_buffers(module))
    elif module is not None:  # an exported program shares the parameters of what was exported
        yield from dict(getattr(module, "state_dict", None) or {}).items()


def _of_function(function: Any) -> Asked:
    signature = inspect.signature(function)

    def asked(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        named = given.arguments
        more = named.get("kwargs") or {}
        knows = SETTING in named or "kwargs" in named
        value = named.get(SETTING, more.get(SETTING, False)) if knows else None
        return next(iter(named.values()), None), value

    return asked


def _of_mutable(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
    """Only the wrapper's own fields are read: for others it asks the module that it wraps."""
    own = getattr(args[0], "__dict__", {}) if args else {}
    settings = own.get("additional_settings")
    value = bool(settings.get(SETTING, False)) if isinstance(settings, dict) else None
    return own.get("original_model"), value
