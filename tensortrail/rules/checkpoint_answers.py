"""What is computed of a stored checkpoint when asked for: values, checksums, fit with a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from tensortrail.rules.checkpoint_files import StoredTensor
from tensortrail.rules.checkpoint_part import Part as Part
from tensortrail.rules.unchanging import unchanging


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
