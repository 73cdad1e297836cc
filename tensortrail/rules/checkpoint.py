"""The view of a stored checkpoint that rules receive: files, their tensors, the index.

It is made from headers and directories alone; no rule opens a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from tensortrail.rules.part import Part as Part
from tensortrail.rules.unchanging import unchanging

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model."
PIPELINE_CONFIG, MODEL_CONFIG = "model_index.json", "config.json"


class Trouble(str, Enum):
    """What is wrong with a file so that it cannot be read, or not as its writer meant it."""

    TRUNCATED = "truncated"
    TRAILING = "trailing bytes"
    POINTER = "LFS pointer"
    ZEROS = "zeros"
    OTHER_CONTENT = "other content"
    HEADER = "header"
    DUPLICATE = "duplicate key"
    SIZE = "size"
    ARCHIVE = "archive"
    STORAGE = "storage"
    CODE = "code"
    EXECUTES = "executes"
    INDEX = "index"
    METADATA = "metadata"
    MISPLACED = "misplaced"
    PIECE = "piece"


class Flaw(NamedTuple):
    """One thing that a reader met in a file."""

    trouble: Trouble
    message: str
    begin: int = -1
    end: int = -1
    expected: str = ""
    found: str = ""


class StoredTensor(NamedTuple):
    name: str
    dtype: str
    """As the file writes it: `BF16`, `bfloat16`."""
    shape: tuple[int, ...]
    begin: int
    """The first of its bytes in the file."""
    end: int
    bits: int
    """Of one element; 0 if the type is not known."""


class Format(str, Enum):
    SAFETENSORS = "safetensors"
    TORCH = "torch"
    GGUF = "gguf"


@dataclass(frozen=True, eq=False)
class WeightFile:
    path: str
    name: str
    """From the folder of the checkpoint."""
    format: Format
    size: int
    tensors: Mapping[str, StoredTensor] = field(default_factory=dict)
    flaws: tuple[Flaw, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    data_begin: int = 0
    whole: bool = True
    """Its list of tensors was read to its end."""


@unchanging(frozen=True, slots=False)
class Index:
    path: str
    name: str
    weight_map: Mapping[str, str] = field(default_factory=dict)
    total_size: int | None = None
    flaws: tuple[Flaw, ...] = ()
    text: bytes = field(default=b"", repr=False)
    usable: bool = True

    def line_of(self, key: str) -> int:
        """The line that the key stands on; 1 if it is not found."""
        for ascii_only in (True, False):
            found = self.text.find(json.dumps(key, ensure_ascii=ascii_only).encode(errors="ignore"))
            if found >= 0:
                return self.text.count(b"\n", 0, found) + 1
        return 1


class StoredPart(NamedTuple):
    """One entry of a distributed checkpoint: a piece of a tensor, or an object, in some file."""

    key: str
    offsets: tuple[int, ...] | None
    """Of the piece in its tensor; None for an object."""
    file: str
    begin: int
    end: int
    transformed: bool = False
    """Its writer packed it in a way of its own."""


class Piece(NamedTuple):
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]


class SplitTensor(NamedTuple):
    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]


@unchanging(frozen=True, slots=False)
class Distributed:
    """What `.metadata` says of a checkpoint that many ranks wrote."""

    path: str
    name: str
    tensors: Mapping[str, SplitTensor] = field(default_factory=dict)
    parts: tuple[StoredPart, ...] = ()
    flaws: tuple[Flaw, ...] = ()
    usable: bool = True


@unchanging(frozen=True, slots=False)
class RankFile:
    """What one rank wrote: pieces of tensors and objects, one behind the other."""

    path: str
    name: str
    size: int
    opened: int
    """Pieces that were looked into."""
    flaws: tuple[Flaw, ...] = ()


@unchanging(frozen=True, slots=False)
class ModelComparison:
    """What the library's loader says of the stored names and shapes."""

    model: str
    """The name of its class."""
    path: str
    """The first of the files that were compared."""
    expected: int
    """Weights of the model."""
    stored: int
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    mismatched: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    """The stored shape and the model's."""
    tied_apart: tuple[tuple[str, str], ...] = ()
    """Names of one weight of the model that are stored with different values."""
    integers: tuple[str, ...] = ()
    """Names stored as integers where the model has floating-point weights."""

    @property
    def of_another_class(self) -> bool:
        """Most of the model is not there, and most of what is there is not the model's."""
        return len(self.missing) * 2 > self.expected and len(self.unexpected) * 2 > self.stored


class StoredValues(NamedTuple):
    """What one tensor's values are, after they were streamed."""

    path: str
    tensor: StoredTensor
    nans: int
    infinite: int
    constant: bool
    zero: bool
    digest: bytes


@unchanging(frozen=True, slots=False)
class Manifest:
    """How the files compare with a list of checksums."""

    path: str
    listed: int
    differing: Mapping[str, tuple[str, str]]
    """The checksum that is listed and the one of the file."""
    missing: tuple[str, ...]
    unlisted: tuple[str, ...]


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
