"""One `save_pretrained` needs weights from files and may destroy them; this knows both."""

from __future__ import annotations

import functools
import inspect
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tensortrail.rules.shared.conversion_groups import nbytes
from tensortrail.rules.shared.shard_plan import Limit, in_bytes, shard_plan
from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.accelerate.offloaded_weights import source
from tensortrail.tracer.hooks.shared.checkpoint_tensors import path_of

SAVE = "transformers.save_pretrained"
SPLIT = "transformers.split"
READ = "transformers.load_offloaded_parameter"
MOST_GROUPS = 20
_FILLS_INDEX_WITH_DICTS = re.compile(r"weight_map\.update\(\{[^{}]*\} for ")


@dataclass
class Save:
    model: Any
    folder: str
    limit: int | str
    positions: dict[str, int]
    """Where the call takes its arguments without their names."""
    converts_parts: bool
    """Weights are brought back to their original format file by file, not before the cut."""
    one_file: bool
    """This release fails where it converts for more files than one."""
    collects: bool = False
    """accelerate could bring all offloaded weights at once."""
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The weights of each file, in the order in which they are written."""
    total: int = 0
    groups: dict[str, list[str]] = field(default_factory=dict)
    cut: dict[str, Any] = field(default_factory=dict)
    """What there is to say of groups that lie in different files."""
    needs: dict[str, str] = field(default_factory=dict)
    """Weights that are still to be read, and the file each of them is in."""
    states: dict[str, tuple[int, int]] = field(default_factory=dict)
    """These files as they were before anything was written."""
    told: set[str] = field(default_factory=set)
    """What has been said already: it is said once a save."""

    def first(self, what: str) -> bool:
        if what in self.told:
            return False
        self.told.add(what)
        return True


class Saves(threading.local):
    """The saves that run in this thread."""

    def __init__(self) -> None:
        self.open: list[Save] = []

    @property
    def last(self) -> Save | None:
        return self.open[-1] if self.open else None


def begun(original: Any, model: Any, args: Any, kwargs: Any) -> Save:
    signature = inspect.signature(original)
    given = signature.bind(model, *args, **kwargs)
    given.apply_defaults()
    of = given.arguments
    return Save(
        model,
        path_of(of.get("save_directory")),
        of.get("max_shard_size", ""),
        {name: place for place, name in enumerate(list(signature.parameters)[1:])},
        bool(of.get("save_original_format")) and not getattr(model, "_hf_peft_config_loaded", 0),
        _needs_one_file(inspect.unwrap(original)),
    )


@functools.cache
def _needs_one_file(function: Any) -> bool:
    return bool(_FILLS_INDEX_WITH_DICTS.search(inspect.getsource(function)))


def without_data(state_dict: Mapping[str, Any]) -> Iterator[str]:
    return (name for name, tensor in state_dict.items() if getattr(tensor, "is_meta", False))


def look_for_sources(save: Save, state_dict: Mapping[str, Any]) -> None:
    """What the weights are read from in the end, though files are removed and written before."""
    for name in without_data(state_dict):
        if path := _source(save.model, name):
            save.needs[name] = path
            if path not in save.states and (state := state_of(path)) is not None:
                save.states[path] = state


def _source(model: Any, name: str) -> str:
    try:
        return source(model, name)
    except AttributeError:  # a name from after a conversion
        return ""


def state_of(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def needed(save: Save, path: str) -> str:
    """A weight that is still to be read from this file, "" if none is."""
    place = _place(path)
    return next((name for name, each in save.needs.items() if _place(each) == place), "")


def overwritten(save: Save) -> tuple[str, str] | None:
    """The first file that is written anew before all was read from it, and a weight in it."""
    places = {name: _place(path) for name, path in save.needs.items()}
    written: set[str] = set()
    for file, names in save.files.items():
        for name in names:
            if places.get(name) in written:
                return save.needs[name], name
        written.add(_place(os.path.join(save.folder, file)))
    return None


def _place(path: str) -> str:
    """A folder may have two names; a link is removed, and not what it leads to."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def look_for_cuts(save: Save, state_dict: Mapping[str, Any], split: Any, again: Any) -> None:
    """Groups of weights in different files; `again` splits as the save does, by another limit."""
    sizes = {
        name: nbytes(tensor) for name, tensor in state_dict.items() if hasattr(tensor, "numel")
    }

    def file_of(limit: int) -> Mapping[str, str]:
        found = split if limit == asked else again(limit)
        return dict(found.tensor_to_filename)

    asked = in_bytes(save.limit)
    plan = shard_plan(sizes, save.groups, asked, file_of)
    if not plan.cut:
        return
    if save.one_file:
        plan = replace(plan, below=None, above=Limit(sum(sizes.values()), 1))
    save.cut = {
        "said": f"cuts apart what becomes {len(plan.cut)} weight{'s' * (len(plan.cut) > 1)}",
        "path": save.folder,
        "count": len(plan.cut),
        "groups": dict(list(plan.cut.items())[:MOST_GROUPS]),
        "max_shard_size": save.limit,
        "asked": asked,
        "below": list(plan.below or ()),
        "above": list(plan.above or ()),
        "positions": save.positions,
    }


def total(state_dict: Mapping[str, Any]) -> int:
    return sum(nbytes(tensor) for tensor in state_dict.values() if hasattr(tensor, "numel"))


def left_by(model: Any) -> dict[str, str]:
    """The hook that has the data of the first weight that is on meta."""
    for path, module in model.named_modules():
        weights = getattr(hook := vars(module).get("_hf_hook"), "weights_map", None)
        for name, tensor in module.named_parameters(path, recurse=False):
            if tensor.is_meta and weights is not None:
                found = {"hook": f"accelerate.{type(hook).__name__}", "module": path}
                return {**found, "kept_in": source(model, name) or "memory"}
    return {}


def can_be_collected(model: Any) -> bool:
    """accelerate can bring each offloaded weight: a tied one is kept under one name only."""
    for module in model.modules():
        hook = vars(module).get("_hf_hook")
        weights = getattr(hook, "weights_map", None)
        if weights is None or not getattr(hook, "offload", False):
            continue
        whole = bool(getattr(hook, "place_submodules", False))
        if not all(_is_kept(weights, key) for key, _ in module.named_parameters(recurse=whole)):
            return False
    return True


def _is_kept(weights: Any, key: str) -> bool:
    while (prefix := getattr(weights, "prefix", None)) is not None:
        weights, key = getattr(weights, "dataset", None), prefix + key
    if (index := getattr(weights, "index", None)) is not None:
        return key in index or key in getattr(weights, "state_dict", ())
    return key in weights


def note_cut(recorder: Recorder, save: Save) -> None:
    if save.cut and save.first("cut"):
        recorder.note(Did.HOOK, op=SPLIT, facts=save.cut)


def note_lost(recorder: Recorder, save: Save, what: tuple[str, str], facts: dict[str, Any]) -> None:
    facts |= {"path": what[0], "key": what[1], "folder": save.folder, "positions": save.positions}
    facts |= {"total": save.total, "collects": save.collects and not save.one_file}
    recorder.note(Did.HOOK, op=READ, facts=facts)
