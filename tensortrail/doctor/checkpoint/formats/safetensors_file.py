"""Headers of safetensors files, held to what the library's own reader demands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tensortrail.doctor.checkpoint.formats.beginnings import LOOKED_AT, kind_of, without_weights
from tensortrail.doctor.checkpoint.formats.element_types import SAFETENSORS
from tensortrail.doctor.checkpoint.formats.json_text import (
    Malformed,
    is_text,
    read_json,
    whole_numbers,
)
from tensortrail.doctor.checkpoint.formats.ranges import Ranges
from tensortrail.rules.checkpoint_files import Flaw, Format, StoredTensor, Trouble, WeightFile

LENGTH = 8
"""Bytes of the number before the header."""
LONGEST_HEADER = 100_000_000
"""The library refuses longer ones."""
METADATA = "__metadata__"
_FIELDS = frozenset(("dtype", "shape", "data_offsets"))


def read_safetensors(file: Ranges, path: str, name: str) -> WeightFile:
    """What its header says, or why it says nothing."""
    broken = WeightFile(path, name, Format.SAFETENSORS, file.size, whole=False)
    if flaw := without_weights(file) or _without_header(file):
        return replace(broken, flaws=(flaw,))
    length = int.from_bytes(file.read(0, LENGTH), "little")
    try:
        header, twice = read_json(file.read(LENGTH, length))
    except Malformed as error:
        byte = LENGTH + error.byte
        return replace(broken, flaws=(Flaw(Trouble.HEADER, f"in the header, {error}", byte, byte),))
    if not isinstance(header, dict):
        flaw = Flaw(Trouble.HEADER, "the header is not a JSON object", LENGTH, LENGTH + length)
        return replace(broken, flaws=(flaw,))
    return _of_header(broken, header, twice, LENGTH + length)


def _of_header(
    file: WeightFile, header: dict[str, Any], twice: list[str], begin: int
) -> WeightFile:
    """With the tensors that it describes; `begin` is the first byte after it."""
    metadata = header.pop(METADATA, {})
    flaws = [*_doubles(twice, header), *_odd_metadata(metadata)]
    tensors: dict[str, StoredTensor] = {}
    for key, entry in header.items():
        if fault := _fault(key, entry):
            flaws.append(Flaw(Trouble.HEADER, f"{key!r} in the header: {fault}", LENGTH, begin))
        else:
            tensors[key] = _stored(key, entry, begin)
    whole = len(tensors) == len(header)
    told = metadata if isinstance(metadata, dict) else {}
    return replace(
        file, tensors=tensors, flaws=tuple(flaws), metadata=told, data_begin=begin, whole=whole
    )


def _stored(key: str, entry: Mapping[str, Any], begin: int) -> StoredTensor:
    first, last = entry["data_offsets"]
    return StoredTensor(
        key, entry["dtype"], tuple(entry["shape"]), begin + first, begin + last,
        SAFETENSORS[entry["dtype"]],
    )  # fmt: skip


def _without_header(file: Ranges) -> Flaw | None:
    """The header is not there, or not as long as it is said to be."""
    if file.size < LENGTH:
        told = "the file ends within the 8 bytes that give the length of its header"
        return Flaw(Trouble.TRUNCATED, told, 0, file.size, "8 bytes", f"{file.size} bytes")
    length = int.from_bytes(file.read(0, LENGTH), "little")
    kind = kind_of(file.read(0, LOOKED_AT))
    starts = file.read(LENGTH, 1) == b"{"
    if kind and not starts:
        told = f"the file is {kind}, not a safetensors file"
        return Flaw(Trouble.OTHER_CONTENT, told, 0, LENGTH, "a safetensors header", kind)
    said = f"{length:,} bytes"
    if length > LONGEST_HEADER:
        told = "the length of its header is beyond what readers accept"
        return Flaw(Trouble.HEADER, told, 0, LENGTH, f"at most {LONGEST_HEADER:,} bytes", said)
    if LENGTH + length > file.size:
        told = "the file ends within its header"
        left = f"{file.size - LENGTH:,} bytes"
        return Flaw(Trouble.TRUNCATED, told, file.size, file.size, said, left)
    if not starts:
        told = "its header does not begin with a brace"
        return Flaw(Trouble.HEADER, told, LENGTH, LENGTH + 1, "{", repr(file.read(LENGTH, 1)))
    return None


def _fault(key: str, entry: Any) -> str:
    """What is wrong with one entry; "" if every reader understands it."""
    if not is_text(key):
        return "the name is not valid text"
    if not isinstance(entry, dict):
        return "the entry is not an object"
    if entry.keys() != _FIELDS and (fault := _fault_of_fields(entry)):
        return fault
    dtype = entry["dtype"]
    if not isinstance(dtype, str) or dtype not in SAFETENSORS:
        return f"no element type {str(dtype)[:40]!r} is known"
    if not whole_numbers(entry["shape"]):
        return "the shape is not a list of whole numbers"
    offsets = entry["data_offsets"]
    if not whole_numbers(offsets) or len(offsets) != 2:
        return "the offsets are not two whole numbers"
    return ""


def _fault_of_fields(entry: dict[str, Any]) -> str:
    """One that is missing; a nested one that the format does not know."""
    if missing := sorted(_FIELDS - entry.keys()):
        return f"the entry has no {missing[0]}"
    if any(isinstance(entry[field], (dict, list)) for field in entry.keys() - _FIELDS):
        return "the entry has a field that the format does not know"
    return ""


def _doubles(twice: list[str], header: dict[str, Any]) -> Iterator[Flaw]:
    if not twice:
        return
    names = ", ".join(repr(key) for key in list(dict.fromkeys(twice))[:3])
    tensors = [key for key in twice if key in header or key == METADATA]
    told = f"{names} occurs twice in the header" if tensors else f"an entry has {names} twice"
    message = f"{told}: some readers keep the first, others the last"
    yield Flaw(Trouble.DUPLICATE, message, found=f"repeated keys: {len(twice)}")


def _odd_metadata(metadata: Any) -> Iterator[Flaw]:
    if not isinstance(metadata, dict) or not all(
        is_text(name) and is_text(value) for name, value in metadata.items()
    ):
        yield Flaw(Trouble.HEADER, "`__metadata__` holds something else than text", LENGTH)
