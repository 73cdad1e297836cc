"""Headers of GGUF files: the key-value pairs are passed over, the tensors kept."""

from __future__ import annotations

import struct
from dataclasses import replace
from math import prod

from tensortrail.doctor.checkpoint.formats.beginnings import LOOKED_AT, kind_of, without_weights
from tensortrail.doctor.checkpoint.formats.ranges import MOST_READ, Ranges, TooMuch
from tensortrail.rules.checkpoint_files import Flaw, Format, StoredTensor, Trouble, WeightFile

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_ALIGNMENT, _ALIGNED_BY = "general.alignment", 32
_MOST_DIMENSIONS, _DEEPEST, _MOST = 8, 4, 2_000_000
_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_TEXT, _ARRAY, _U32 = 8, 9, 4
_BLOCKS = {
    "F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34), "Q8_1": (9, 32, 40),
    "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210), "Q8_K": (15, 256, 292), "IQ2_XXS": (16, 256, 66),
    "IQ2_XS": (17, 256, 74), "IQ3_XXS": (18, 256, 98), "IQ1_S": (19, 256, 50),
    "IQ4_NL": (20, 32, 18), "IQ3_S": (21, 256, 110), "IQ2_S": (22, 256, 82),
    "IQ4_XS": (23, 256, 136), "I8": (24, 1, 1), "I16": (25, 1, 2), "I32": (26, 1, 4),
    "I64": (27, 1, 8), "F64": (28, 1, 8), "IQ1_M": (29, 256, 56), "BF16": (30, 1, 2),
    "TQ1_0": (34, 256, 54), "TQ2_0": (35, 256, 66), "MXFP4": (39, 32, 17),
    "NVFP4": (40, 64, 36), "Q1_0": (41, 128, 18),
}  # fmt: skip
"""The number of each type, the elements of a block and its bytes."""
_TYPES = {number: (name, block, size) for name, (number, block, size) in _BLOCKS.items()}


class _Bad(Exception):
    """The header cannot be followed; `byte` is where that shows."""

    def __init__(self, message: str, byte: int) -> None:
        super().__init__(message)
        self.byte = byte


class _Short(Exception):
    """The file ends within the header."""


def read_gguf(file: Ranges, path: str, name: str) -> WeightFile:
    broken = WeightFile(path, name, Format.GGUF, file.size, whole=False)
    if flaw := without_weights(file) or _other(file):
        return replace(broken, flaws=(flaw,))
    reader = _Reader(file)
    try:
        tensors, begin = _read(reader)
    except _Bad as error:
        flaw = Flaw(Trouble.HEADER, str(error), error.byte, error.byte)
    except _Short:
        if file.size > MOST_READ:
            raise TooMuch(f"a header of more than {MOST_READ:,} bytes") from None
        flaw = Flaw(Trouble.TRUNCATED, "the file ends within its header", file.size, file.size)
    else:
        flaws = _around(file, tensors, begin, reader.alignment)
        return replace(broken, tensors=tensors, data_begin=begin, flaws=flaws, whole=True)
    return replace(broken, flaws=(flaw,))


class _Reader:
    def __init__(self, file: Ranges) -> None:
        self.data = file.read(0, min(file.size, MOST_READ))
        self.at = 0
        self.alignment = _ALIGNED_BY

    def number(self, form: str) -> int:
        width = struct.calcsize(form)
        if self.at + width > len(self.data):
            raise _Short
        self.at += width
        return int(struct.unpack_from(f"<{form}", self.data, self.at - width)[0])

    def text(self) -> str:
        length = self.number("Q")
        self.skip(length)
        return self.data[self.at - length : self.at].decode("utf-8", "backslashreplace")

    def skip(self, length: int) -> None:
        if self.at + length > len(self.data):
            raise _Short
        self.at += length


def _read(reader: _Reader) -> tuple[dict[str, StoredTensor], int]:
    reader.skip(len(_MAGIC))
    version = reader.number("I")
    if version not in _VERSIONS:
        raise _Bad(f"version {version} of GGUF is not known", len(_MAGIC))
    count, pairs = reader.number("Q"), reader.number("Q")
    if count > _MOST or pairs > _MOST:
        raise _Bad(f"the header is said to have {max(count, pairs):,} entries", 8)
    for _ in range(pairs):
        _pass_over_pair(reader)
    described = [_describe(reader) for _ in range(count)]
    begin = -(-reader.at // reader.alignment) * reader.alignment
    tensors: dict[str, StoredTensor] = {}
    for each in described:
        if each.name in tensors:
            raise _Bad(f"{each.name!r} occurs twice in the header", 0)
        tensors[each.name] = each._replace(begin=begin + each.begin, end=begin + each.end)
    return tensors, begin


def _pass_over_pair(reader: _Reader) -> None:
    key, kind = reader.text(), reader.number("I")
    if key == _ALIGNMENT and kind == _U32:
        reader.alignment = reader.number("I")
        if not reader.alignment or reader.alignment % 8:
            raise _Bad(f"the alignment is {reader.alignment}", reader.at)
    else:
        _pass_over(reader, kind, 0)


def _pass_over(reader: _Reader, kind: int, depth: int) -> None:
    if kind in _WIDTHS:
        reader.skip(_WIDTHS[kind])
    elif kind == _TEXT:
        reader.skip(reader.number("Q"))
    elif kind == _ARRAY and depth < _DEEPEST:
        inner, length = reader.number("I"), reader.number("Q")
        if inner in _WIDTHS:
            reader.skip(_WIDTHS[inner] * length)
            return
        for _ in range(length):
            _pass_over(reader, inner, depth + 1)
    else:
        raise _Bad(f"a value has type {kind}, which is not known", reader.at)


def _describe(reader: _Reader) -> StoredTensor:
    name, dimensions = reader.text(), reader.number("I")
    if dimensions > _MOST_DIMENSIONS:
        raise _Bad(f"{name!r} is said to have {dimensions:,} dimensions", reader.at)
    shape = tuple(reader.number("Q") for _ in range(dimensions))
    kind, begin = reader.number("I"), reader.number("Q")
    if kind not in _TYPES:
        raise _Bad(f"{name!r} has type {kind}, which is not known", reader.at)
    dtype, block, size = _TYPES[kind]
    if shape and shape[0] % block:
        raise _Bad(
            f"rows of {shape[0]} elements are not a whole number of blocks of {dtype}", reader.at
        )
    return StoredTensor(name, dtype, shape, begin, begin + prod(shape) // block * size, 0)


def _around(
    file: Ranges, tensors: dict[str, StoredTensor], begin: int, alignment: int
) -> tuple[Flaw, ...]:
    """Each tensor begins at the next multiple of the alignment; the file ends with the last."""
    place = end = begin
    for each in sorted(tensors.values(), key=lambda each: (each.begin, each.end)):
        if each.begin != place:
            told = f"{each.name!r} does not begin where the tensor before it ends"
            expected, found = f"offset {place:,}", f"offset {each.begin:,}"
            return (Flaw(Trouble.MISPLACED, told, each.begin, each.end, expected, found),)
        end = each.end
        place = -(-end // alignment) * alignment
    found = f"{file.size:,} bytes"
    if file.size < end:
        cut = next(each.name for each in tensors.values() if each.end > file.size)
        told = f"the file ends within the bytes of {cut!r}"
        return (Flaw(Trouble.TRUNCATED, told, file.size, file.size, f"{end:,} bytes", found),)
    if file.size > place and tensors:
        told = f"{file.size - place:,} bytes follow the last tensor"
        return (Flaw(Trouble.TRAILING, told, place, file.size, f"{place:,} bytes", found),)
    return ()


def _other(file: Ranges) -> Flaw | None:
    beginning = file.read(0, LOOKED_AT)
    if beginning.startswith(_MAGIC):
        return None
    if len(beginning) < len(_MAGIC):
        return Flaw(Trouble.TRUNCATED, "the file ends within its first bytes", 0, file.size)
    kind = kind_of(beginning) or "of no known format"
    return Flaw(Trouble.OTHER_CONTENT, f"the file is {kind}, not GGUF", 0, 4, "GGUF", kind)
