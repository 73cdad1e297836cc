"""Damages by chance, from a seed: cuts at every kind of byte, flips, huge lengths, odd headers."""

from __future__ import annotations

import io
import json
import pickle
import random
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Mutation = Callable[[bytes, random.Random], bytes]

NUMBERS = (0, 1, 7, 8, 255, 1 << 16, (1 << 31) - 1, 1 << 32, (1 << 53) + 1, (1 << 63) - 1, 1 << 64)
VALUES: Sequence[Any] = (
    None, True, -1, 0.5, 1e300, "", "F32", "BF16", "F12", "\ud800", "\0", [], {}, [[]], [1, 2, 3],
    [0, 0], [1 << 40], [-1], {"dtype": "F32"}, *NUMBERS,
)  # fmt: skip


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randrange(len(content))]


def cut_near_the_end(content: bytes, draw: random.Random) -> bytes:
    return content[: -draw.randint(1, min(200, len(content)))]


def append(content: bytes, draw: random.Random) -> bytes:
    return content + draw.randbytes(draw.randint(1, 64))


def flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 8))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def flip_at_the_beginning(content: bytes, draw: random.Random) -> bytes:
    size = min(len(content), 400)
    return flip(content[:size], draw) + content[size:]


def zeros(content: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(content))
    end = min(len(content), begin + draw.choice((1, 8, 64, 4096)))
    return content[:begin] + bytes(end - begin) + content[end:]


def insert(content: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(content))
    return content[:begin] + draw.randbytes(draw.randint(1, 9)) + content[begin:]


def remove(content: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(content))
    return content[:begin] + content[begin + draw.randint(1, 9) :]


def other_number(content: bytes, draw: random.Random) -> bytes:
    """Eight, four or two bytes as a length that nobody wrote."""
    width = draw.choice((2, 4, 8))
    begin = draw.choice((0, draw.randrange(max(len(content) - width, 1))))
    number = draw.choice(NUMBERS) % (1 << 8 * width)
    return content[:begin] + number.to_bytes(width, "little") + content[begin + width :]


BYTES: Sequence[Mutation] = (
    cut, cut_near_the_end, append, flip, flip_at_the_beginning, zeros, insert, remove, other_number,
)  # fmt: skip


def header_text(content: bytes, draw: random.Random) -> bytes:
    """Other bytes in the header of a safetensors file, of the right length."""
    raw, data = _apart(content)
    return _joined(draw.choice(BYTES)(raw, draw), data)


def header_value(content: bytes, draw: random.Random) -> bytes:
    """Another value somewhere in its header."""
    raw, data = _apart(content)
    header = json.loads(raw)
    entry = header[draw.choice(sorted(header))]
    field = draw.choice(("dtype", "shape", "data_offsets", "more"))
    value = entry.get(field)
    if isinstance(value, list) and value and draw.random() < 0.6:
        value[draw.randrange(len(value))] = draw.choice((*NUMBERS, -1, 0.5, None))
    else:
        entry[field] = draw.choice(VALUES)
    return _joined(json.dumps(header).encode(), data)


def header_structure(content: bytes, draw: random.Random) -> bytes:
    """Entries removed, repeated, exchanged, nested."""
    raw, data = _apart(content)
    header = json.loads(raw)
    one, other = draw.sample([key for key in header if key != "__metadata__"], 2)
    kind = draw.randrange(6)
    if kind == 0:
        del header[one]
    elif kind == 1:
        header[one], header[other] = header[other], header[one]
    elif kind == 2:
        header[one]["data_offsets"] = header[other]["data_offsets"]
    elif kind == 3:
        text = json.dumps(header)
        return _joined(f"{text[:-1]}, {json.dumps({one: header[other]})[1:]}".encode(), data)
    elif kind == 4:
        depth = draw.choice((10, 130, 2000, 50_000))
        return _joined(b'{"a":' + b"[" * depth + b"]" * depth + b"}", data)
    else:
        header["__metadata__"] = draw.choice(VALUES)
    return _joined(json.dumps(header).encode(), data)


SAFETENSORS: Sequence[Mutation] = (
    *BYTES, header_text, header_text, header_value, header_value, header_value, header_structure,
)  # fmt: skip


def pickle_bytes(content: bytes, draw: random.Random) -> bytes:
    """Other bytes in the pickle of an archive that is whole otherwise."""
    return _with_records(content, lambda name, data: (
        draw.choice(BYTES)(data, draw) if name.endswith("data.pkl") else data
    ))  # fmt: skip


def hostile_pickle(content: bytes, draw: random.Random) -> bytes:
    made = draw.choice(HOSTILE)
    return _with_records(content, lambda name, data: made if name.endswith("data.pkl") else data)


def record(content: bytes, draw: random.Random) -> bytes:
    """A record that is missing, cut or longer."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        chosen = draw.choice(archive.namelist())
    kind = draw.randrange(3)
    changed = {0: None, 1: b"", 2: bytes(3)}[kind]

    def change(name: str, data: bytes) -> bytes | None:
        if name != chosen or changed is None:
            return data if name != chosen else None
        return data[:-4] if not changed else data + changed

    return _with_records(content, change)


TORCH: Sequence[Mutation] = (*BYTES, pickle_bytes, pickle_bytes, hostile_pickle, record)
OLD: Sequence[Mutation] = BYTES


def _bomb() -> bytes:
    """Two to the fortieth lists, in a few hundred bytes."""
    nested: list[Any] = []
    for _ in range(40):
        nested = [nested, nested]
    return pickle.dumps(nested, protocol=2)


HOSTILE = (
    b"cposix\nsystem\n(S'true'\ntR.",
    b"\x80\x02cbuiltins\neval\nX\x01\0\0\0" + b"1\x85R.",
    b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
    b"(S'true'\nios\nsystem\n.",
    b"(cos\nsystem\nS'true'\no.",
    b"\x80\x02ccollections\nOrderedDict\n)R}X\x01\0\0\0acos\nsystem\nsb.",
    b"\x80\x02\x82\x01.",
    b"\x80\x02]" + b"]" * 100_000 + b".",
    b"\x80\x02" + b"(" * 100_000 + b".",
    b"\x80\x02X\xff\xff\xff\x7fabc.",
    b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.",
    b"\x80\x02\x8b\xff\xff\xff\x7f.",
    b"p-1\n.", b"g0\n.", b"\x80\x02h\x05.", b"\x80\xff.", b"N0.", b".", b"I" + b"9" * 9000 + b"\n.",
    b"\x80\x02}(K\x01K\x02K\x03u.", b"\x80\x02N}b.", b"\x80\x02]]s.", b"\x80\x02\x88\x86.",
    _bomb(),
)  # fmt: skip


def samples(content: bytes, mutations: Sequence[Mutation], count: int) -> Iterator[bytes]:
    """The same for the same number, on every machine."""
    for seed in range(count):
        draw = random.Random(seed)
        yield mutations[seed % len(mutations)](content, draw)


def _apart(content: bytes) -> tuple[bytes, bytes]:
    length = int.from_bytes(content[:8], "little")
    return content[8 : 8 + length], content[8 + length :]


def _joined(raw: bytes, data: bytes) -> bytes:
    return len(raw).to_bytes(8, "little") + raw + data


def _with_records(content: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for each in old.infolist():
            data = change(each.filename, old.read(each))
            if data is not None:
                new.writestr(each.filename, data)
    return out.getvalue()
