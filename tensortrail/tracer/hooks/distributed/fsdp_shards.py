"""A shard of FSDP2 and the parameter in its module may come apart.

A parameter of a sharded module is a DTensor around memory to which FSDP2 keeps a reference of its
own. Whoever puts another tensor into the module, or has kept the one that was there before, works
on memory that is not gathered for the next forward."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.storages import Entry
from tensortrail.tracer.reading.sentences import size

SHARD, GROUP, RESET = "fully_shard", "FSDPParamGroup", "FSDPParam.reset_sharded_param"
MOST_TOLD = 2
"""A group comes and goes at every step: the first times tell how."""
FIRST_TURNS, LATER_TURNS = 8, 8
"""Of a group's gatherings: all of the first and each eighth later are looked at."""
GATHERED = " (gathered)"


class Shards:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told: Counter[tuple[str, int]] = Counter()
        self._left: dict[int, tuple[Entry, Entry]] = {}
        """Storages that parameters had before they were sharded, with the shards."""

    # --- the life of a shard -------------------------------------------------------------
    def name(self, modules: Any) -> None:
        """Before `fully_shard`: the shards get the names of the parameters."""
        for module in modules if isinstance(modules, (list, tuple)) else [modules]:
            if isinstance(module, Module):
                self._recorder.name_module(module)

    def sharded(self, sharded: Any, whole: list[Entry]) -> None:
        shards = self._recorder.storages.entries(sharded.sharded_param)
        facts = {"said": _geometry(sharded)}
        for old, new in zip(whole, shards, strict=False):
            if old.name:
                self._recorder.storages.name(new, old.name)
            self._recorder.note(Did.SWAP, new, old, SHARD, facts)
            facts_of_old = {"said": "replaced in its module by a shard"}
            self._recorder.note(Did.HOOK, old, new, SHARD, facts_of_old)
            self._left[old.number] = (old, new)

    def changed(self, group: Any, op: str) -> None:
        """The group was gathered or freed."""
        params = group.fsdp_params
        first = self._entry(params[0].sharded_param) if params else None
        if first is None:
            return
        if op == "unshard":
            self._name_gathered(params)
        self._told[op, first.number] += 1
        if self._told[op, first.number] <= MOST_TOLD:
            facts = {"said": _gathered(params) if op == "unshard" else _freed(params)}
            self._recorder.note(Did.HOOK, first, op=f"{GROUP}.{op}", facts=facts)

    def _name_gathered(self, params: Any) -> None:
        storages = self._recorder.storages
        gathered = [each._unsharded_param for each in params]
        if all(type(each) in PLAIN for each in gathered):
            known = storages.all_known(gathered)
            if len(known) == len(gathered) and all(each.name for each in known):
                return  # as after each but the first gathering
        for each in params:
            shard = self._entry(each.sharded_param)
            if shard is not None and shard.name:
                for entry in storages.entries(each._unsharded_param):
                    if not entry.name:
                        storages.name(entry, shard.name + GATHERED)

    # --- whose memory it is --------------------------------------------------------------
    def held(self, sharded: Any) -> list[Entry]:
        """What the module has there now."""
        return self._recorder.storages.entries(_of_module(sharded))

    def reset(self, sharded: Any, before: list[Entry]) -> None:
        """FSDP2 looked at the parameter again: did it make a copy of its own?"""
        after = self.held(sharded)
        for old, new in zip(before, after, strict=False):
            if old is not new:
                if old.name:
                    self._recorder.storages.name(new, old.name)
                facts = {"said": "copied into a padded or pinned shard"}
                self._recorder.note(Did.SWAP, new, old, RESET, facts)

    def before_gathering(self, group: Any) -> None:
        if group.is_sharded and group._all_gather_result is None:
            self._told["gather", id(group)] += 1
            turn = self._told["gather", id(group)]
            if turn <= FIRST_TURNS or not turn % LATER_TURNS:
                for each in group.fsdp_params:
                    self._look(each)

    def _look(self, sharded: Any) -> None:
        recorder = self._recorder
        seen = _of_module(sharded)
        used = recorder.storages.entry(sharded._sharded_param_data)
        entry = recorder.storages.entry(seen) if isinstance(seen, torch.Tensor) else None
        if used is None or entry is None:
            return
        if recorder.fresh_memory.is_fresh(used):
            recorder.fresh_memory.read(used, f"{GROUP}.unshard")
        if entry is not used:
            how = "local" if seen is sharded.sharded_param else "replaced"
            self._parted(entry, used, f"{GROUP}.unshard", how)

    def before_step(self, optimizer: Any) -> None:
        """Does it train what the modules had before they were sharded?"""
        if not self._left or self._told["step", id(optimizer)]:
            return
        self._told["step", id(optimizer)] += 1
        for group in optimizer.param_groups:
            for tensor in group["params"]:
                entry = self._entry(tensor)
                left, shard = self._left.get(entry.number if entry else 0, (None, None))
                if entry is not None and shard is not None and left is entry:
                    self._recorder.storages.name(entry, shard.name or entry.name)
                    op = f"{type(optimizer).__name__}.step"
                    self._parted(entry, shard, op, "optimizer")

    def _parted(self, entry: Entry, used: Entry | None, op: str, how: str) -> None:
        key = (how, entry.number)
        self._told[key] += 1
        if self._told[key] == 1:
            facts = {"parted": how, "said": "no longer the memory that FSDP2 gathers"}
            self._recorder.note(Did.HOOK, entry, used, op, facts)

    def _entry(self, tensor: Any) -> Entry | None:
        return self._recorder.storages.entry(tensor)


def _of_module(sharded: Any) -> Any:
    """The parameter as the module has it."""
    info = sharded._module_info
    return info.module._parameters.get(info.param_name)


def _geometry(sharded: Any) -> str:
    dim, ranks = sharded.fsdp_placement.dim, sharded.mesh_info.shard_mesh_size
    own, whole = sharded.sharded_size[dim], sharded._orig_size[dim]
    padded = sharded.padded_sharded_param_size[dim]
    more = f", padded to {padded}" if padded != own else ""
    return f"sharded over {ranks} ranks: {own} of {whole} along dim {dim}{more}"


def _gathered(params: Any) -> str:
    nbytes = sum(t.numel() * t.itemsize for each in params for t in each.all_gather_outputs)
    return f"gathered with {_others(params)} into {size(nbytes)} on {params[0].device}"


def _freed(params: Any) -> str:
    return f"sharded again with {_others(params)}: the gathered memory is freed"


def _others(params: Any) -> str:
    count = len(params) - 1
    return f"{count} {'other' if count == 1 else 'others'} of its group"
