"""One damage a function: what it does to a whole checkpoint, and the check that must speak."""

from __future__ import annotations

import json
import shutil
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load_file, save_file

from tests.doctor.checkpoint.written import (
    INDEX,
    Header,
    edit_header,
    edit_index,
    edit_records,
    header_of,
    shards,
    weights,
)

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 4976698672\n"
)
PAGE = "<!DOCTYPE html>\n<html><body>404: not found</body></html>\n"
HEAD = "head.weight"
HOSTILE = b"cposix\nsystem\n(S'true'\ntR."


class Damage(NamedTuple):
    base: str
    code: str
    do: Callable[[Path], Any]

    @property
    def name(self) -> str:
        return self.do.__name__


DAMAGES: list[Damage] = []


def damage(base: str, code: str) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    def add(do: Callable[[Path], Any]) -> Callable[[Path], Any]:
        DAMAGES.append(Damage(base, code, do))
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


@damage("single", "CKP801")
def cut_in_the_data(folder: Path) -> None:
    cut(single(folder), -100)


@damage("single", "CKP801")
def cut_by_one_byte(folder: Path) -> None:
    cut(single(folder), -1)


@damage("single", "CKP801")
def cut_behind_the_header(folder: Path) -> None:
    cut(single(folder), 8 + len(header_of(single(folder))))


@damage("single", "CKP801")
def cut_in_the_header(folder: Path) -> None:
    cut(single(folder), 60)


@damage("single", "CKP801")
def cut_in_the_length(folder: Path) -> None:
    cut(single(folder), 5)


@damage("single", "CKP802")
def bytes_appended(folder: Path) -> None:
    with single(folder).open("ab") as file:
        file.write(b"\1" * 16)


@damage("single", "CKP803")
def pointer(folder: Path) -> None:
    single(folder).write_text(POINTER)


@damage("single", "CKP804")
def emptied(folder: Path) -> None:
    cut(single(folder), 0)


@damage("single", "CKP804")
def only_zeros(folder: Path) -> None:
    single(folder).write_bytes(bytes(single(folder).stat().st_size))


@damage("single", "CKP804")
def first_block_of_zeros(folder: Path) -> None:
    content = single(folder).read_bytes()
    single(folder).write_bytes(bytes(1024) + content[1024:])


@damage("single", "CKP805")
def length_beyond_all_readers(folder: Path) -> None:
    content = single(folder).read_bytes()
    single(folder).write_bytes((1 << 62).to_bytes(8, "little") + content[8:])


@damage("single", "CKP805")
def header_with_a_lost_brace(folder: Path) -> None:
    edit_header(single(folder), raw=header_of(single(folder)).replace(b"},", b" ,", 1))


@damage("single", "CKP805")
def header_is_a_list(folder: Path) -> None:
    edit_header(single(folder), raw=b"[1, 2] ]")


@damage("single", "CKP805")
def header_is_no_text(folder: Path) -> None:
    edit_header(single(folder), raw=header_of(single(folder)).replace(b"head", b"\xff\xfe\xfdd"))


@damage("single", "CKP805")
def header_of_endless_depth(folder: Path) -> None:
    edit_header(single(folder), raw=b'{"a":' + b"[" * 100_000)


@damage("single", "CKP805")
def unknown_element_type(folder: Path) -> None:
    in_entry(folder, "dtype", "F12")


@damage("single", "CKP805")
def negative_shape(folder: Path) -> None:
    in_entry(folder, "shape", [-16, -8])


@damage("single", "CKP805")
def shape_of_fractions(folder: Path) -> None:
    in_entry(folder, "shape", [16.0, 8.0])


@damage("single", "CKP805")
def three_offsets(folder: Path) -> None:
    in_entry(folder, "data_offsets", [0, 1, 2])


@damage("single", "CKP805")
def entry_without_type(folder: Path) -> None:
    edit_header(single(folder), lambda header: header[HEAD].pop("dtype"))


@damage("single", "CKP805")
def entry_is_a_number(folder: Path) -> None:
    edit_header(single(folder), lambda header: header.update({HEAD: 7}))


@damage("single", "CKP805")
def numbers_in_the_metadata(folder: Path) -> None:
    edit_header(single(folder), lambda header: header.update(__metadata__={"epoch": 3}))


@damage("single", "CKP806")
def key_twice(folder: Path) -> None:
    header = json.loads(header_of(single(folder)))
    again = json.dumps({HEAD: header[HEAD]})[1:]
    raw = json.dumps(header)[:-1].encode() + b"," + again.encode()
    edit_header(single(folder), raw=raw + b" " * (-len(raw) % 8))


@damage("single", "CKP807")
def other_element_type(folder: Path) -> None:
    in_entry(folder, "dtype", "F16")


@damage("single", "CKP807")
def other_shape(folder: Path) -> None:
    in_entry(folder, "shape", [16, 9])


@damage("single", "CKP808")
def tensor_over_another(folder: Path) -> None:
    def edit(header: Header) -> None:
        begin, end = header[HEAD]["data_offsets"]
        header[HEAD]["data_offsets"] = [begin - 32, end - 32]

    edit_header(single(folder), edit)


@damage("single", "CKP808")
def gap_between_tensors(folder: Path) -> None:
    def edit(header: Header) -> None:
        last = max(header.values(), key=lambda entry: entry.get("data_offsets", [0, 0])[1])
        last["data_offsets"] = [each + 64 for each in last["data_offsets"]]

    edit_header(single(folder), edit)


@damage("single", "CKP808")
def offsets_reversed(folder: Path) -> None:
    edit_header(single(folder), lambda header: header[HEAD]["data_offsets"].reverse())


@damage("single", "CKP808")
def offset_out_of_range(folder: Path) -> None:
    in_entry(folder, "data_offsets", [1 << 40, (1 << 40) + 512])


@damage("single", "CKP809")
def data_not_aligned(folder: Path) -> None:
    edit_header(single(folder), raw=header_of(single(folder)).rstrip() + b" ")
    if not (8 + len(header_of(single(folder)))) % 4:
        edit_header(single(folder), raw=header_of(single(folder)) + b" ")


@damage("single", "CKP813")
def web_page(folder: Path) -> None:
    single(folder).write_text(PAGE)


@damage("single", "CKP813")
def archive_under_a_wrong_name(folder: Path) -> None:
    torch.save(weights(), single(folder))


@damage("single", "CKP813")
def gguf_under_a_wrong_name(folder: Path) -> None:
    single(folder).write_bytes(b"GGUF\3\0\0\0" + bytes(64))


@damage("single", "CKP814")
def weights_never_collected(folder: Path) -> None:
    save_file({key: torch.empty(0) for key in weights()}, single(folder))


@damage("single", "CKP864")
def names_of_a_compiled_module(folder: Path) -> None:
    save_file({f"_orig_mod.{key}": each for key, each in weights().items()}, single(folder))


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


@damage("torch", "CKP801")
def archive_cut(folder: Path) -> None:
    cut(archive(folder), -700)


@damage("torch", "CKP802")
def archive_with_more_behind(folder: Path) -> None:
    with archive(folder).open("ab") as file:
        file.write(b"\1" * 40)


@damage("torch", "CKP803")
def archive_is_a_pointer(folder: Path) -> None:
    archive(folder).write_text(POINTER)


@damage("torch", "CKP804")
def archive_ends_in_zeros(folder: Path) -> None:
    size = archive(folder).stat().st_size
    cut(archive(folder), size // 2)
    with archive(folder).open("ab") as file:
        file.write(bytes(size - size // 2))


@damage("torch", "CKP806")
def record_twice(folder: Path) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(archive(folder), "a") as file:
        warnings.simplefilter("ignore")
        file.writestr("pytorch_model/data/0", bytes(512))


@damage("torch", "CKP810")
def record_header_lost(folder: Path) -> None:
    content = archive(folder).read_bytes()
    begin = content.index(b"PK\3\4", 4)
    archive(folder).write_bytes(content[:begin] + bytes(4) + content[begin + 4 :])


@damage("torch", "CKP810")
def directory_damaged(folder: Path) -> None:
    content = archive(folder).read_bytes()
    begin = content.rindex(b"PK\1\2")
    archive(folder).write_bytes(content[:begin] + b"AB" + content[begin + 2 :])


@damage("torch", "CKP810")
def pickle_removed(folder: Path) -> None:
    edit_records(archive(folder), lambda records: records.pop("pytorch_model/data.pkl"))


@damage("torch", "CKP810")
def pickle_cut(folder: Path) -> None:
    name = "pytorch_model/data.pkl"
    edit_records(archive(folder), lambda records: records.update({name: records[name][:300]}))


@damage("torch", "CKP811")
def pickle_runs_a_command(folder: Path) -> None:
    name = "pytorch_model/data.pkl"
    edit_records(archive(folder), lambda records: records.update({name: HOSTILE}))


@damage("torch", "CKP811")
def pickle_of_own_classes(folder: Path) -> None:
    torch.save({"weights": weights(), "at": Path("x")}, archive(folder))


@damage("torch", "CKP812")
def record_removed(folder: Path) -> None:
    edit_records(archive(folder), lambda records: records.pop("pytorch_model/data/3"))


@damage("torch", "CKP812")
def record_cut(folder: Path) -> None:
    edit_records(archive(folder), lambda records: records.update({"pytorch_model/data/0": b"1234"}))


@damage("torch", "CKP813")
def archive_is_a_page(folder: Path) -> None:
    archive(folder).write_text(PAGE)


@damage("torch", "CKP814")
def weights_on_meta(folder: Path) -> None:
    torch.save({key: each.to("meta") for key, each in weights().items()}, archive(folder))


@damage("old", "CKP801")
def old_file_cut(folder: Path) -> None:
    cut(archive(folder), -64)


@damage("old", "CKP801")
def old_file_cut_in_its_pickle(folder: Path) -> None:
    cut(archive(folder), 400)


@damage("old", "CKP802")
def old_file_with_more_behind(folder: Path) -> None:
    with archive(folder).open("ab") as file:
        file.write(b"\1" * 40)


@damage("old", "CKP811")
def old_file_runs_a_command(folder: Path) -> None:
    content = archive(folder).read_bytes()
    begin = content.index(b"ccollections\nOrderedDict\n")
    other = b"cposix\nsystem\n"
    archive(folder).write_bytes(content[:begin] + other + content[begin + 25 :])


@damage("old", "CKP812")
def old_storage_of_another_length(folder: Path) -> None:
    content = archive(folder).read_bytes()
    lengths = (128).to_bytes(8, "little")
    begin = content.rindex(lengths)
    archive(folder).write_bytes(content[:begin] + (64).to_bytes(8, "little") + content[begin + 8 :])
