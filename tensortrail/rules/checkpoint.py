"""The view of a stored checkpoint that rules receive: files, their tensors, the index.

It is made from headers and directories alone; no rule opens a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, NamedTuple

from tensortrail.rules.checkpoint_answers import Manifest, ModelComparison, StoredValues
from tensortrail.rules.checkpoint_files import Distributed, Format, Index, RankFile, WeightFile
from tensortrail.rules.checkpoint_part import Part as Part
from tensortrail.rules.unchanging import unchanging

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model."
PIPELINE_CONFIG, MODEL_CONFIG = "model_index.json", "config.json"


class ShardName(NamedTuple):
    """The parts of `model-00002-of-00005.safetensors`."""

    stem: str
    number: int
    total: int
    suffix: str


_SHARD = re.compile(r"(.+)-(\d{1,9})-of-(\d{1,9})\.(\w+)")


def shard_name(name: str) -> ShardName | None:
    """What the name of a shard says; None if it is the name of no shard."""
    if not (found := _SHARD.fullmatch(name)):
        return None
    stem, number, total, suffix = found.groups()
    return ShardName(stem, int(number), int(total), suffix)


@unchanging(frozen=True, slots=False)
class Checkpoint:
    path: str
    files: tuple[WeightFile, ...] = ()
    indexes: tuple[Index, ...] = ()
    names: frozenset[str] = frozenset()
    """Of all files in the folder."""
    outside: frozenset[str] = frozenset()
    """Files that an index names and that lie outside of the folder; none of them was opened."""
    single: bool = False
    """One file was named, not its folder."""
    distributed: Distributed | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Of the files of ranks, in bytes."""
    ranks: tuple[RankFile, ...] = ()
    """Those that the metadata names."""
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Configuration files that are JSON objects, by name."""
    components: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Folders of a pipeline that are there, and the names in each."""
    values: tuple[StoredValues, ...] | None = None
    """Of all tensors that lie in one piece; read only when somebody asks for it."""
    manifest: Manifest | None = None
    """Verified; only when somebody asks for it."""
    comparison: ModelComparison | None = None
    """With a model; made only when somebody asks for it."""

    def has(self, part: Part) -> bool:
        if part is Part.INDEX:
            return bool(self.indexes)
        if part in _OF_FOLDERS:
            return _OF_FOLDERS[part](self)
        if part is Part.SHARDS:
            return not self.single and any(shard_name(file.name) for file in self.files)
        if part is Part.FILES:
            return bool(self.files or self.indexes or self.distributed)
        if part is Part.PICKLES:
            return self.distributed is not None or self.has(Part.TORCH)
        formats = {Part.SAFETENSORS: Format.SAFETENSORS, Part.TORCH: Format.TORCH}
        return any(file.format is formats.get(part) for file in self.files)

    def file(self, name: str) -> WeightFile | None:
        return next((file for file in self.files if file.name == name), None)


_OF_FOLDERS: Mapping[Part, Callable[[Checkpoint], bool]] = {
    Part.RANKS: lambda found: bool(found.sizes) or found.distributed is not None,
    Part.METADATA: lambda found: found.distributed is not None,
    Part.PIECES: lambda found: any(file.opened for file in found.ranks),
    Part.ADAPTER: lambda found: ADAPTER_CONFIG in found.names or _has_adapter(found),
    Part.VALUES: lambda found: found.values is not None,
    Part.MANIFEST: lambda found: found.manifest is not None,
    Part.MODEL: lambda found: found.comparison is not None,
    Part.CONFIG: lambda found: MODEL_CONFIG in found.configs and bool(found.files),
    Part.PIPELINE: lambda found: PIPELINE_CONFIG in found.configs,
}


def _has_adapter(checkpoint: Checkpoint) -> bool:
    return any(name.startswith(ADAPTER_WEIGHTS) for name in checkpoint.names)
