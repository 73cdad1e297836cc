"""How a damage is written: what it does to which checkpoint, and the check that must speak."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.doctor.checkpoint.written import edit_header

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 4976698672\n"
)
PAGE = "<!DOCTYPE html>\n<html><body>404: not found</body></html>\n"
HEAD = "head.weight"
HOSTILE = b"cposix\nsystem\n(S'true'\ntR."
Done = Callable[[Path], Any]


class Damage(NamedTuple):
    base: str
    code: str
    do: Done

    @property
    def name(self) -> str:
        return self.do.__name__


class Damages(list[Damage]):
    def damage(self, base: str, code: str) -> Callable[[Done], Done]:
        def add(do: Done) -> Done:
            self.append(Damage(base, code, do))
            return do

        return add


def single(folder: Path) -> Path:
    return folder / "model.safetensors"


def archive(folder: Path) -> Path:
    return folder / "pytorch_model.bin"


def cut(path: Path, length: int) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:length] if length >= 0 else content[: len(content) + length])


def in_entry(folder: Path, field: str, value: Any) -> None:
    edit_header(single(folder), lambda header: header[HEAD].update({field: value}))
