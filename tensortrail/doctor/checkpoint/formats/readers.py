"""Which reader a file of weights is given to: by the end of its name, or by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tensortrail.doctor.checkpoint.formats.beginnings import LOOKED_AT, kind_of, without_weights
from tensortrail.doctor.checkpoint.formats.gguf_file import read_gguf
from tensortrail.doctor.checkpoint.formats.ranges import Ranges
from tensortrail.doctor.checkpoint.formats.safetensors_file import LENGTH, read_safetensors
from tensortrail.doctor.checkpoint.formats.torch_file import read_torch
from tensortrail.rules.checkpoint_files import Flaw, Trouble, WeightFile

Reader = Callable[[Ranges, str, str], WeightFile]
READERS: dict[str, Reader] = {
    "safetensors": read_safetensors,
    "bin": read_torch,
    "pt": read_torch,
    "pth": read_torch,
    "ckpt": read_torch,
    "gguf": read_gguf,
}
"""By the end of the name."""
_OTHERS_BIN = re.compile(r"(openvino|tokenizer|vocab|spiece|ggml|onnx).*\.bin|.*\.onnx\.bin")
"""Files of that ending that torch never wrote."""


def reader_of(name: str) -> Reader:
    return READERS.get(ending_of(name), _by_content)


def is_weights(name: str) -> bool:
    return ending_of(name) in READERS and not _OTHERS_BIN.fullmatch(name.lower())


def ending_of(name: str) -> str:
    return name.rpartition(".")[2].lower()


def _by_content(file: Ranges, path: str, name: str) -> WeightFile:
    """A file whose name says nothing."""
    beginning = file.read(0, LOOKED_AT)
    if beginning.startswith(b"GGUF"):
        return read_gguf(file, path, name)
    if beginning.startswith((b"PK\x03\x04", b"\x80")):
        return read_torch(file, path, name)
    read = read_safetensors(file, path, name)
    if beginning[LENGTH : LENGTH + 1] == b"{" or without_weights(file) is not None:
        return read
    kind = kind_of(beginning)
    told = f"the file is {kind or 'of an unknown kind'}, and its name is not that of weights"
    flaw = Flaw(Trouble.OTHER_CONTENT, told, 0, 0, "safetensors, torch.save or GGUF", kind)
    return replace(read, flaws=(flaw,))
