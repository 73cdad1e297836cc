"""Small whole checkpoints, and the tools to damage them."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import split_torch_state_dict_into_shards
from safetensors.torch import save_file

LAYERS = 4
INDEX = "model.safetensors.index.json"
Header = dict[str, Any]


def weights(dtype: Any = torch.float32) -> dict[str, Any]:
    """Those of a little model, in the order in which its state dict has them."""
    draw = torch.Generator().manual_seed(16)
    shapes: dict[str, tuple[int, ...]] = {"embed.weight": (16, 8)}
    for number in range(LAYERS):
        shapes |= {
            f"layers.{number}.attention.weight": (8, 8),
            f"layers.{number}.attention.bias": (8,),
            f"layers.{number}.norm.weight": (8,),
        }
    shapes["head.weight"] = (16, 8)
    return {key: torch.randn(shape, generator=draw).to(dtype) for key, shape in shapes.items()}


def write_all(folder: Path) -> None:
    """One of each kind, in a folder of its name."""
    for name in ("single", "sharded", "torch", "old"):
        (folder / name).mkdir(parents=True)
    save_file(weights(), folder / "single" / "model.safetensors", {"format": "pt"})
    torch.save(weights(), folder / "torch" / "pytorch_model.bin")
    torch.save(
        weights(), folder / "old" / "pytorch_model.bin", _use_new_zipfile_serialization=False
    )
    shard(folder / "sharded", weights())


def shard(folder: Path, tensors: Mapping[str, Any], limit: int = 400) -> None:
    """As transformers writes them."""
    split = split_torch_state_dict_into_shards(
        dict(tensors), filename_pattern="model{suffix}.safetensors", max_shard_size=limit
    )
    for file, keys in split.filename_to_tensors.items():
        save_file({key: tensors[key] for key in keys}, folder / file, {"format": "pt"})
    index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n")


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("model-*.safetensors"))


def edit_header(
    path: Path, edit: Callable[[Header], Any] | None = None, raw: bytes | None = None
) -> None:
    """The header anew, the data as it was."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    if raw is None:
        assert edit is not None
        header = json.loads(content[8 : 8 + length])
        edit(header)
        raw = json.dumps(header, separators=(",", ":")).encode()
        raw += b" " * (-len(raw) % 8)
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + content[8 + length :])


def header_of(path: Path) -> bytes:
    content = path.read_bytes()
    return content[8 : 8 + int.from_bytes(content[:8], "little")]


def edit_index(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    path = folder / INDEX
    index = json.loads(path.read_text())
    edit(index)
    path.write_text(json.dumps(index, indent=2))


def edit_records(path: Path, edit: Callable[[dict[str, bytes]], Any]) -> None:
    """A torch archive with other records."""
    with zipfile.ZipFile(path) as archive:
        records = {each.filename: archive.read(each) for each in archive.infolist()}
    edit(records)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in records.items():
            archive.writestr(name, content)


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target
