"""What befalls a single file of safetensors."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests.doctor.checkpoint.damaging import (
    HEAD,
    PAGE,
    POINTER,
    Damages,
    cut,
    in_entry,
    single,
)
from tests.doctor.checkpoint.written import (
    Header,
    edit_header,
    header_of,
    weights,
)

DAMAGES = Damages()
damage = DAMAGES.damage


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
