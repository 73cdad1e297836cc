"""What befalls the files that `torch.save` writes, new and old ones."""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

import torch

from tests.doctor.checkpoint.damaging import (
    HOSTILE,
    PAGE,
    POINTER,
    Damages,
    archive,
    cut,
)
from tests.doctor.checkpoint.written import (
    edit_records,
    weights,
)

DAMAGES = Damages()
damage = DAMAGES.damage


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
