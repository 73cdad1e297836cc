"""What the models of the program know of a tensor that an operation failed with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.hidden_modules import hidden
from tensortrail.tracer.identity.model_names import ModelNames
from tensortrail.tracer.identity.module_tensors import owned, parts
from tensortrail.tracer.noticing.notes import Notes


def explain(
    operands: Sequence[dict[str, Any]], tensors: Sequence[Any], notes: Notes, models: ModelNames
) -> None:
    """Operands get the other names of a tied weight, the list that hides a layer from its model,
    and what is special about a buffer."""
    wanted = {id(tensor): told for told, tensor in zip(operands, tensors, strict=True)}
    if len({told["device"] for told in operands}) < 2:
        return
    models.look_here()
    for name, model in models.all():
        for identity, paths in _paths(model, name, wanted).items():
            if len(paths) > 1:
                wanted[identity]["names"] = paths
        for prefix, part in parts(model):
            for key, buffer in part._buffers.items():
                if id(buffer) in wanted and key in part._non_persistent_buffers_set:
                    wanted[id(buffer)]["unsaved"] = ".".join(filter(None, (name, prefix, key)))
        for each in hidden(model, name):
            for path, tensor in owned(each.module, each.path):
                if id(tensor) in wanted:
                    _hide(notes, wanted[id(tensor)], tensor, path, each)


def _paths(model: Module, name: str, wanted: Collection[int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for prefix, part in parts(model):
        for key, weight in part._parameters.items():
            if id(weight) in wanted:
                path = ".".join(filter(None, (name, prefix, key)))
                found.setdefault(id(weight), []).append(path)
    return found


def _hide(notes: Notes, told: dict[str, Any], tensor: Any, path: str, by: Any) -> None:
    entry = notes.storages.entry(tensor)
    if entry is not None:
        notes.storages.name(entry, path)
    line = assigned_at(by.owner, by.holder.rpartition(".")[2])
    told["hidden"] = {"holder": by.holder, "assigned": list(line or ())}
