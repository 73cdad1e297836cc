"""What an incomplete load left as it was is noted when it is used."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch.nn import Module
from torch.nn.modules.batchnorm import _NormBase

from tensortrail.plurals import counted
from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.noticing.fresh_memory import AT_THE_END, FreshMemory, version_of
from tensortrail.tracer.noticing.loads import Loads
from tensortrail.tracer.noticing.notes import Notes

LOAD = "Module.load_state_dict"
MOST_KEYS = 50
WRITTEN_SINCE = 10
"""In place: initialisers write a few times, training more often."""
STATISTICS = ("running_mean", "running_var")


@dataclass(frozen=True)
class Load:
    """A load that has ended."""

    op: str
    module: Module
    missing: Collection[str] = ()
    """Weights that were not given, by their path in the module."""
    unused: Collection[str] = ()
    """Keys that nothing took."""
    file: str = ""
    scales: Mapping[str, str] = field(default_factory=dict)
    """Keys that nothing took, beside a weight that was taken as this type of quantized number."""


class IncompleteLoads:
    def __init__(self, notes: Notes, fresh: FreshMemory, loads: Loads) -> None:
        self._notes, self._fresh, self._loads = notes, fresh, loads
        self.untrained: dict[int, int] = {}
        """Storages that were read, and the load that left them."""
        self._number = 0
        self._remove: Any = None

    def ended(self, load: Load) -> None:
        """Values that were given are known by now."""
        weights = dict(_weights(load.module))
        missing = {*load.missing} & weights.keys()
        left = {name: entry for name in missing if (entry := self._initial(weights[name]))}
        if not left and not load.unused:
            return
        self._number += 1
        count = len(left)
        facts = {
            "said": _said(count, len(load.unused)),
            "load": self._number,
            "model": type(load.module).__name__,
            "weights": len(weights),
            "missing": len(missing),
            "left": sorted(load.missing)[:MOST_KEYS],
            "unused": sorted(load.unused)[:MOST_KEYS],
            "unused_count": len(load.unused),
            "count": len(load.missing),
            "file": load.file,
            "all given": _in_all(weights.keys() - missing),
        }
        if load.scales:
            facts["scales"] = dict(sorted(load.scales.items())[:MOST_KEYS])
        self._notes.note(Did.HOOK, op=load.op, facts=facts)
        for entry in left.values():
            then = partial(self._read_left, self._number)
            self._fresh.awaited(entry, then)

    def left(self, op: str, tensors: Iterable[Any], file: str) -> None:
        """As `ended`, where no module is known: of those that are some module's."""
        found = (self._initial(each) for each in tensors)
        entries = [each for each in found if each is not None and each.name]
        if not entries:
            return
        self._number += 1
        facts = {
            "said": f"left {len(entries)} weights as they were",
            "load": self._number,
            "file": file,
        }
        self._notes.note(Did.HOOK, op=op, facts=facts)
        for entry in entries:
            self._fresh.awaited(entry, partial(self._read_left, self._number))

    def untied(self, module: Module, names: Sequence[str], entry: Entry) -> None:
        """Told when one of them is read, if nobody has tied them again by then."""
        site, known = self._notes.site_here(), weakref.ref(module)

        def read(entry: Entry, op: Any) -> None:
            found = known()
            if found is not None and op != AT_THE_END and not _is_tied(found, names):
                facts = {"said": "one weight no longer", "untied": [*names]}
                self._notes.note_at(site, Did.HOOK, entry, op=LOAD, facts=facts)

        self._fresh.awaited(entry, read)

    def _initial(self, tensor: Any) -> Entry | None:
        """Its storage, if nothing has written there since it was initialised."""
        entry = self._notes.storages.entry(tensor)
        if entry is None or entry.device == "meta" or entry.number in self._loads.files:
            return None
        trained = (version_of(tensor) or 0) > WRITTEN_SINCE
        return None if trained else entry

    def _read_left(self, load: int, entry: Entry, op: Any) -> None:
        if op == AT_THE_END:
            self._notes.note_at(0, Did.HOOK, entry, op=op, facts={"initial": load})
            return
        facts = {"said": "read with what its initialiser left", "initial": load}
        self._notes.note(Did.HOOK, entry, op=op, facts=facts)
        self.untrained[entry.number] = load
        self._look_at_optimizers()

    def _look_at_optimizers(self) -> None:
        if self._remove is None:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            self._remove = register_optimizer_step_post_hook(self._stepped).remove

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        with suppress(Exception):
            groups = optimizer.param_groups if self.untrained else ()
            for tensor in (each for group in groups for each in group["params"]):
                entry = self._notes.storages.known(tensor) if tensor.grad is not None else None
                if entry is not None and entry.number in self.untrained:
                    load = self.untrained.pop(entry.number)
                    op = f"{type(optimizer).__name__}.step"
                    facts = {"said": f"trained by {op}", "trained": load}
                    self._notes.note(Did.HOOK, entry, op=op, facts=facts)

    def freed(self, number: int) -> None:
        self.untrained.pop(number, None)

    def at_end(self) -> None:
        if self._remove is not None:
            self._remove()


def _in_all(names: Collection[str]) -> list[str]:
    """The parts that the paths of all these weights have: that of one adapter, with its name."""
    parts = [set(each.split(".")) for each in names]
    return sorted(set.intersection(*parts)) if parts else []


def _weights(module: Module) -> Iterator[tuple[str, Any]]:
    """What training changes: what is computed once, as a mask, is the same without a file."""
    yield from module.named_parameters(remove_duplicate=False)
    for prefix, each in module.named_modules():
        if isinstance(each, _NormBase):
            for name in STATISTICS:
                if (tensor := getattr(each, name)) is not None:
                    yield f"{prefix}.{name}" if prefix else name, tensor


def _is_tied(module: Module, names: Sequence[str]) -> bool:
    found = [module.get_parameter(name) for name in names]
    return len({each.untyped_storage()._cdata for each in found}) == 1


def _said(left: int, unused: int) -> str:
    """What a load did not do."""
    weights = f"left {counted(left, 'weight')} as {'it was' if left == 1 else 'they were'}"
    keys = f"{counted(unused, 'key')} of the file {'fits' if unused == 1 else 'fit'} no weight"
    return ", ".join([weights] * bool(left) + [keys] * bool(unused))
