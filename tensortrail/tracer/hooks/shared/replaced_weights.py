"""`assign=True` puts other tensors into a module: they may lie elsewhere, have another type, or be
two where there was one."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NamedTuple

from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import is_wrapper
from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.identity.storages import Entry


class Weight(NamedTuple):
    tensor: int
    """The identity of its Python object."""
    dtype: str
    wrapper: str
    """The class of a wrapper tensor, "" for a plain one."""
    entry: Entry


class Held:
    """What a module held before a load."""

    def __init__(self, recorder: Recorder, module: Module) -> None:
        self._before = _weights(recorder, module)

    def assigned(self, recorder: Recorder, module: Module) -> None:
        op, after = "Module.load_state_dict", _weights(recorder, module)
        retyped: Counter[str] = Counter()
        moved: Counter[str] = Counter()
        unwrapped: Counter[str] = Counter()
        for name, new in after.items():
            old = self._before.get(name)
            if old is None or old.tensor == new.tensor:
                continue
            if old.entry.device != new.entry.device:
                recorder.swapped(old.entry, new.entry, op)
                if old.entry.device != "meta":
                    moved[f"{old.entry.device} -> {new.entry.device}"] += 1
            if old.wrapper and not new.wrapper:
                unwrapped[f"{old.wrapper} -> {new.dtype}"] += 1
            elif old.dtype != new.dtype:
                retyped[f"{old.dtype} -> {new.dtype}"] += 1
        kept = Counter(f"{each.entry.device} {each.dtype}" for each in after.values())
        if moved or retyped or unwrapped:
            facts = {
                "said": "replaced by `assign=True`",
                "moved": dict(moved),
                "retyped": dict(retyped),
                "unwrapped": dict(unwrapped),
                "now": dict(kept),
            }
            recorder.note(Did.HOOK, op=op, facts=facts)

    def untied(self, recorder: Recorder, module: Module) -> None:
        after = _weights(recorder, module)
        for names in self._untied(after):
            recorder.incomplete_loads.untied(module, names, after[names[0]].entry)

    def _untied(self, after: dict[str, Weight]) -> list[list[str]]:
        groups: defaultdict[int, list[str]] = defaultdict(list)
        for name, each in self._before.items():
            groups[each.tensor].append(name)
        tied = (names for names in groups.values() if len(names) > 1 and {*names} <= after.keys())
        return [names for names in tied if len({after[name].entry.number for name in names}) > 1]


def _weights(recorder: Recorder, module: Module) -> dict[str, Weight]:
    found: dict[str, Weight] = {}
    for name, tensor in owned(module, ""):
        entry = recorder.storages.entry(tensor)
        if entry is not None:
            wrapper = type(tensor).__name__ if is_wrapper(tensor) else ""
            found[name] = Weight(id(tensor), str(tensor.dtype)[6:], wrapper, entry)
    return found
