"""What a `save_pretrained` will do, before it does: files, groups that are cut, memory, disk.

The names, the conversions and the cut are the library's own, on tensors without values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tensortrail.doctor.library_models import NoModel, need_transformers, quietly
from tensortrail.doctor.saves.conversions import Converted, as_it_is, converted, differences
from tensortrail.doctor.saves.model import model_of
from tensortrail.rules.shared.conversion_groups import groups, nbytes
from tensortrail.rules.shared.shard_plan import Groups, ShardPlan, in_bytes, shard_plan

LARGEST = "50GB"
"""What transformers takes where nothing is said."""
_PATTERN = "model{suffix}.safetensors"


@dataclass(frozen=True)
class SavePlan:
    model: str
    """The name of its class."""
    asked: str
    """`max_shard_size`, as it was written."""
    by_file: bool
    """Weights are converted to their original format file by file: some are offloaded."""
    shards: ShardPlan
    groups: Groups
    """Weights that become one together, by the weight they become."""
    wrong: tuple[str, ...]
    """What the files will hold that they should not, or lack."""
    files: Mapping[str, int]
    """Bytes of tensors in each file, as they are written."""
    memory: int
    """Bytes of host memory that the save takes at its peak, over what the program has then."""
    whole: int
    """The same for a limit that makes one file."""

    @property
    def works(self) -> bool:
        return not self.wrong

    @property
    def disk(self) -> int:
        return sum(self.files.values())


def plan_save(
    model: Any, max_shard_size: int | str = LARGEST, *, by_file: bool | None = None
) -> SavePlan:
    """`model`: one of transformers, or the path of its folder or configuration. `by_file`:
    whether weights are offloaded, so that each file is converted alone; None takes what the
    model is, and yes for a path.

    Raises ValueError for a size that is none, and NoModel where there is nothing to plan."""
    need_transformers()
    asked = in_bytes(max_shard_size)
    if asked <= 0:
        raise ValueError(f"{max_shard_size!r} is not a size: it has to be above 0")
    with quietly():
        if isinstance(model, (str, os.PathLike)):
            model, by_file = model_of(os.fspath(model)), by_file is not False
        elif by_file is None:
            by_file = is_offloaded(model)
        return _planned(model, str(max_shard_size), asked, by_file)


def is_offloaded(model: Any) -> bool:
    placed = getattr(model, "hf_device_map", None) or {}
    return bool({"cpu", "disk"} & {str(each) for each in placed.values()})


def _planned(model: Any, asked: str, limit: int, by_file: bool) -> SavePlan:
    weights = saved_weights(model)
    whole = converted(model, weights)
    if by_file:
        return _of_files(model, asked, limit, weights, whole)
    if whole.error:
        raise NoModel(f"the conversion raises {whole.error}")
    shards = _cut(whole.weights, {}, limit)
    files = {file: as_it_is(part) for file, part in _parts(whole.weights, shards.file_of).items()}
    sizes = {file: part.given for file, part in files.items()}
    return SavePlan(
        type(model).__name__, asked, False, shards, {}, (), sizes, whole.made, whole.made
    )


def _of_files(
    model: Any, asked: str, limit: int, weights: Mapping[str, Any], whole: Converted
) -> SavePlan:
    together = groups(model, weights)
    shards = _cut(weights, together, limit)
    files = {file: converted(model, part) for file, part in _parts(weights, shards.file_of).items()}
    wrong = tuple(differences(whole, files))
    if wrong and not shards.cut:  # then no limit is known to help
        shards = replace(shards, below=None, above=None)
    return SavePlan(
        type(model).__name__,
        asked,
        True,
        shards,
        together,
        wrong,
        {file: part.nbytes for file, part in files.items()},
        max((part.memory for part in files.values()), default=0),
        whole.memory,
    )


def saved_weights(model: Any) -> dict[str, Any]:
    """What the library cuts, in its order, without values: no ignored and no tied ones."""
    import torch
    from transformers.modeling_utils import remove_tied_weights_from_state_dict

    if getattr(model, "_hf_peft_config_loaded", False):
        raise NoModel("an adapter is loaded, and only that is saved")
    if getattr(model, "hf_quantizer", None) is not None:
        raise NoModel("the weights are quantized, and the quantizer decides what is saved")
    ignored = getattr(model, "_keys_to_ignore_on_save", None) or ()
    weights = {
        name: torch.empty_like(tensor, device="meta", requires_grad=False)
        for name, tensor in model.state_dict().items()
        if name not in ignored and isinstance(tensor, torch.Tensor)
    }
    return dict(remove_tied_weights_from_state_dict(weights, model))


def _cut(weights: Mapping[str, Any], together: Groups, limit: int) -> ShardPlan:
    from transformers.modeling_utils import split_torch_state_dict_into_shards

    def split(size: int) -> Mapping[str, str]:
        found = split_torch_state_dict_into_shards(
            dict(weights), filename_pattern=_PATTERN, max_shard_size=size
        )
        return dict(found.tensor_to_filename)

    sizes = {name: nbytes(tensor) for name, tensor in weights.items()}
    return shard_plan(sizes, together, limit, split)


def _parts(weights: Mapping[str, Any], file_of: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name, file in file_of.items():
        found.setdefault(file, {})[name] = weights[name]
    return found
