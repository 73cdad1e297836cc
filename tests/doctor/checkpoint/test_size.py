"""Checkpoints larger than any machine: what is read grows with their headers alone."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

from tensortrail.doctor.checkpoint.examine import examine
from tensortrail.doctor.checkpoint.formats import ranges


def header_of(entries: dict[str, tuple[int, int]]) -> bytes:
    header = {
        key: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for key, (begin, end) in entries.items()
    }
    raw = json.dumps(header).encode()
    raw += b" " * (-len(raw) % 8)
    return len(raw).to_bytes(8, "little") + raw


def write_sparse(path: Path, keys: list[str], size: int) -> None:
    places = {key: (number * size, (number + 1) * size) for number, key in enumerate(keys)}
    raw = header_of(places)
    with path.open("wb") as file:
        file.write(raw)
        file.truncate(len(raw) + len(keys) * size)


def write_index(folder: Path, weight_map: dict[str, str], total: int) -> None:
    told = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(told))


def write_shards(folder: Path, files: int, tensors: int, size: int) -> None:
    weight_map: dict[str, str] = {}
    for number in range(files):
        name = f"model-{number + 1:05}-of-{files:05}.safetensors"
        keys = [f"model.layers.{number}.experts.{each}.weight" for each in range(tensors)]
        write_sparse(folder / name, keys, size)
        weight_map |= dict.fromkeys(keys, name)
    write_index(folder, weight_map, files * tensors * size)


def test_a_terabyte_is_judged_by_its_headers(tmp_path: Path) -> None:
    write_shards(tmp_path, files=20, tensors=5, size=10_000_000_000)
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) > 10**12
    read: list[int] = []
    original = os.pread

    def counted(handle: int, length: int, begin: int) -> bytes:
        read.append(length)
        return original(handle, length, begin)

    ranges.os.pread = counted  # type: ignore[attr-defined]
    try:
        found = examine(str(tmp_path))
    finally:
        ranges.os.pread = original  # type: ignore[attr-defined]
    assert not found.findings
    assert sum(read) < 100_000


def test_memory_grows_with_the_number_of_tensors_alone(tmp_path: Path) -> None:
    write_shards(tmp_path, files=4, tensors=2_500, size=16)
    tracemalloc.start()
    try:
        found = examine(str(tmp_path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not found.findings
    assert sum(len(file.tensors) for file in found.checkpoint.files) == 10_000
    assert peak < 25_000_000
