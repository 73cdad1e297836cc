"""The files of a stored checkpoint: their tensors, their flaws, the index, and what ranks wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from tensortrail.rules.checkpoint_part import Part as Part
from tensortrail.rules.unchanging import unchanging


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
