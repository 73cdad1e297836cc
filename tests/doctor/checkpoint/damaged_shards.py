"""What befalls the shards of a checkpoint and their index."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.doctor.checkpoint.damaging import (
    HEAD,
    POINTER,
    Damages,
    cut,
    single,
)
from tests.doctor.checkpoint.written import (
    INDEX,
    edit_index,
    shards,
    weights,
)

DAMAGES = Damages()
damage = DAMAGES.damage


@damage("sharded", "CKP801")
def shard_cut(folder: Path) -> None:
    cut(shards(folder)[1], -10)


@damage("sharded", "CKP803")
def shard_is_a_pointer(folder: Path) -> None:
    shards(folder)[0].write_text(POINTER)


@damage("sharded", "CKP803")
def index_is_a_pointer(folder: Path) -> None:
    (folder / INDEX).write_text(POINTER)


@damage("sharded", "CKP806")
def index_key_twice(folder: Path) -> None:
    text = (folder / INDEX).read_text()
    first = f'"{HEAD}": "{shards(folder)[0].name}",'
    (folder / INDEX).write_text(text.replace('"weight_map": {', '"weight_map": {' + first))


@damage("sharded", "CKP821")
def shard_removed(folder: Path) -> None:
    shards(folder)[-1].unlink()


@damage("sharded", "CKP822")
def entry_for_another_shard(folder: Path) -> None:
    other = shards(folder)[0].name
    edit_index(folder, lambda index: index["weight_map"].update({"layers.2.norm.weight": other}))


@damage("sharded", "CKP822")
def entries_of_two_shards_swapped(folder: Path) -> None:
    one, other = shards(folder)[1].name, shards(folder)[2].name
    swapped = {one: other, other: one}

    def swap(index: Any) -> None:
        told = index["weight_map"]
        told.update({key: swapped.get(name, name) for key, name in told.items()})

    edit_index(folder, swap)


@damage("sharded", "CKP822")
def entry_for_nothing(folder: Path) -> None:
    other = shards(folder)[0].name
    edit_index(folder, lambda index: index["weight_map"].update({"layers.9.norm.weight": other}))


@damage("sharded", "CKP823")
def entry_removed(folder: Path) -> None:
    edit_index(folder, lambda index: index["weight_map"].pop("layers.2.norm.weight"))


@damage("sharded", "CKP823")
def shard_with_one_more(folder: Path) -> None:
    path = shards(folder)[1]
    save_file(load_file(path) | {"layers.9.norm.weight": torch.ones(8)}, path)


@damage("sharded", "CKP824")
def older_shards_left(folder: Path) -> None:
    for number in (1, 2):
        target = folder / f"model-0000{number}-of-00002.safetensors"
        shutil.copy(shards(folder)[-1], target)


@damage("sharded", "CKP824")
def single_file_left(folder: Path) -> None:
    save_file(weights(), single(folder))


@damage("sharded", "CKP825")
def index_removed(folder: Path) -> None:
    (folder / INDEX).unlink()


@damage("sharded", "CKP825")
def index_and_shard_removed(folder: Path) -> None:
    (folder / INDEX).unlink()
    shards(folder)[0].unlink()


@damage("sharded", "CKP826")
def total_size_of_another_type(folder: Path) -> None:
    edit_index(folder, lambda index: index["metadata"].update(total_size=12345))


@damage("sharded", "CKP827")
def entry_above_the_folder(folder: Path) -> None:
    edit_index(folder, lambda index: index["weight_map"].update({"more": "../x.safetensors"}))


@damage("sharded", "CKP827")
def entry_with_a_whole_path(folder: Path) -> None:
    edit_index(folder, lambda index: index["weight_map"].update({"more": "/etc/passwd"}))


@damage("sharded", "CKP828")
def shard_in_the_place_of_another(folder: Path) -> None:
    shutil.copy(shards(folder)[1], shards(folder)[2])


@damage("sharded", "CKP828")
def shard_of_another_precision(folder: Path) -> None:
    path = shards(folder)[2]
    save_file({key: each.half() for key, each in load_file(path).items()}, path)


@damage("sharded", "CKP828")
def shards_of_two_counts(folder: Path) -> None:
    old = shards(folder)[-1]
    new = "model-00006-of-00009.safetensors"
    old.rename(folder / new)
    text = (folder / INDEX).read_text()
    (folder / INDEX).write_text(text.replace(old.name, new))


@damage("sharded", "CKP829")
def index_cut(folder: Path) -> None:
    cut(folder / INDEX, -40)


@damage("sharded", "CKP829")
def index_without_map(folder: Path) -> None:
    edit_index(folder, lambda index: index.pop("weight_map"))


@damage("sharded", "CKP829")
def index_with_numbers(folder: Path) -> None:
    edit_index(folder, lambda index: index["weight_map"].update({HEAD: 3}))


@damage("sharded", "CKP830")
def weight_in_a_second_shard(folder: Path) -> None:
    path = shards(folder)[1]
    save_file(load_file(path) | {HEAD: weights()[HEAD]}, path)
