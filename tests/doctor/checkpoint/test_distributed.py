"""Distributed checkpoints: whole as torch writes them, and each damage seen by one check."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex

from tensortrail.cli import main
from tensortrail.doctor.checkpoint.examine import examine
from tensortrail.doctor.checkpoint.formats.ranges import Ranges
from tests.doctor.checkpoint.written import copy

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
Edit = Callable[[Any], Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("distributed") / "whole"
    model = {f"layers.{number}.weight": torch.ones(8, 4) * number for number in range(3)}
    dcp.save({"model": model, "step": 7, "note": {"a": [1]}}, checkpoint_id=folder, no_dist=True)
    return folder


def rank_file(folder: Path) -> Path:
    (found,) = folder.glob("*.distcp")
    return found


def edit(folder: Path, change: Edit) -> None:
    """This pickle is our own: it may be unpickled."""
    path = folder / ".metadata"
    metadata = pickle.loads(path.read_bytes())
    change(metadata)
    path.write_bytes(pickle.dumps(metadata))


def chunk(offset: tuple[int, ...], size: tuple[int, ...]) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(offsets=torch.Size(offset), sizes=torch.Size(size))


KEY = "model.layers.0.weight"


def in_pieces(folder: Path, *begin_and_end: tuple[int, int]) -> None:
    """The rows of the first layer in several pieces, behind what is in the file."""

    def change(metadata: Any) -> None:
        old = next(each for each in metadata.storage_data if each.fqn == KEY)
        info = metadata.storage_data.pop(old)
        pieces = [chunk((begin, 0), (end - begin, 4)) for begin, end in begin_and_end]
        metadata.state_dict_metadata[KEY].chunks = pieces
        with rank_file(folder).open("ab") as file:
            for number, piece in enumerate(pieces):
                offset = file.tell()
                torch.save(torch.ones(piece.sizes), file)
                place = MetadataIndex(KEY, piece.offsets, number)
                length = file.tell() - offset
                metadata.storage_data[place] = type(info)(info.relative_path, offset, length)

    edit(folder, change)


def test_what_torch_writes_is_fine(whole: Path) -> None:
    found = examine(str(whole))
    assert not found.findings
    assert not found.problems
    assert found.checkpoint.distributed is not None
    assert len(found.checkpoint.distributed.tensors) == 3
    assert {part.key for part in found.checkpoint.distributed.parts} >= {"step", "note.a"}
    names = {check.name for check in found.ran}
    assert {"tensor-not-covered", "stored-piece-misplaced", "rank-file-missing"} <= names
    assert examine(str(whole / ".metadata")).ran == found.ran


def test_a_tensor_in_pieces_is_fine(whole: Path, tmp_path: Path) -> None:
    folder = copy(whole, tmp_path / "pieces")
    in_pieces(folder, (0, 4), (4, 8))
    assert not examine(str(folder)).findings


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def _misplace(metadata: Any) -> None:
    first, second = list(metadata.storage_data.values())[:2]
    second.offset = first.offset


def _rename(metadata: Any, name: str) -> None:
    for info in metadata.storage_data.values():
        info.relative_path = name


def _retype(metadata: Any) -> None:
    metadata.state_dict_metadata[KEY].properties.dtype = torch.float16


def _reshape(metadata: Any) -> None:
    entry = metadata.state_dict_metadata[KEY]
    entry.size = torch.Size((4, 8))
    entry.chunks = [chunk((0, 0), (4, 8))]


def _overwrite(folder: Path, key: str, what: bytes, at: int = 0) -> None:
    """Bytes of a piece, counted from its beginning, or, below zero, from its end."""
    metadata = pickle.loads((folder / ".metadata").read_bytes())
    info = next(info for place, info in metadata.storage_data.items() if place.fqn == key)
    content = bytearray(rank_file(folder).read_bytes())
    begin = info.offset + at + (info.length if at < 0 else 0)
    content[begin : begin + len(what)] = what
    rank_file(folder).write_bytes(content)


def _hostile(folder: Path) -> None:
    """An object that runs a command when it is loaded."""

    class Command:
        def __reduce__(self) -> Any:
            return os.system, ("true",)

    def change(metadata: Any) -> None:
        info = next(info for each, info in metadata.storage_data.items() if each.fqn == "note.a")
        with rank_file(folder).open("ab") as file:
            info.offset = file.tell()
            torch.save(Command(), file)
            info.length = file.tell() - info.offset

    edit(folder, change)


DAMAGES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "metadata removed": ("CKP842", lambda folder: (folder / ".metadata").unlink()),
    "metadata cut": ("CKP801", lambda folder: _cut(folder / ".metadata")),
    "metadata empty": ("CKP804", lambda folder: (folder / ".metadata").write_bytes(b"")),
    "metadata of something else": (
        "CKP841",
        lambda folder: (folder / ".metadata").write_bytes(pickle.dumps({"a": 1})),
    ),
    "metadata with odd bytes": (
        "CKP841",
        lambda folder: (folder / ".metadata").write_bytes(b"\x80\x04\xff."),
    ),
    "metadata runs a command": (
        "CKP811",
        lambda folder: (folder / ".metadata").write_bytes(b"cposix\nsystem\n(S'true'\ntR."),
    ),
    "rank file removed": ("CKP843", lambda folder: rank_file(folder).unlink()),
    "rank file above the folder": (
        "CKP843",
        lambda folder: edit(folder, lambda metadata: _rename(metadata, "../x.distcp")),
    ),
    "rank file cut": ("CKP844", lambda folder: _cut(rank_file(folder))),
    "piece over another": ("CKP844", lambda folder: edit(folder, _misplace)),
    "piece missing": (
        "CKP845",
        lambda folder: in_pieces(folder, (0, 3), (4, 8)),
    ),
    "pieces overlap": (
        "CKP845",
        lambda folder: in_pieces(folder, (0, 5), (4, 8)),
    ),
    "piece stored nowhere": (
        "CKP845",
        lambda folder: edit(
            folder, lambda metadata: metadata.storage_data.pop(list(metadata.storage_data)[-1])
        ),
    ),
    "piece without its end": ("CKP847", lambda folder: _overwrite(folder, KEY, bytes(30), -30)),
    "piece of zeros": ("CKP847", lambda folder: _overwrite(folder, KEY, bytes(1100))),
    "piece is a page": ("CKP847", lambda folder: _overwrite(folder, KEY, b"<!doctype html>")),
    "object without its end": ("CKP847", lambda folder: _overwrite(folder, "step", bytes(30), -30)),
    "object runs a command": ("CKP811", _hostile),
    "piece of another type": ("CKP847", lambda folder: edit(folder, _retype)),
    "piece of another shape": ("CKP847", lambda folder: edit(folder, _reshape)),
    "file of an earlier save": (
        "CKP846",
        lambda folder: (folder / "__7_0.distcp").write_bytes(b"old"),
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_one_check_sees_the_damage(whole: Path, tmp_path: Path, name: str) -> None:
    code, damage = DAMAGES[name]
    folder = copy(whole, tmp_path / "damaged")
    damage(folder)
    found = examine(str(folder))
    told = [(finding.code, finding.message) for finding in found.findings]
    if name == "rank file above the folder":
        told = [each for each in told if each[0] != "CKP846"]  # the real file is named no more
    assert [each for each, _ in told] == [code], told
    assert not found.problems


def test_what_was_packed_by_its_writer_is_not_opened(whole: Path, tmp_path: Path) -> None:
    folder = copy(whole, tmp_path / "packed")
    _overwrite(folder, KEY, b"\x28\xb5\x2f\xfd")

    def pack(metadata: Any) -> None:
        for place, info in metadata.storage_data.items():
            info.transform_descriptors = ["stream.zstd"] if place.fqn == KEY else None

    edit(folder, pack)
    found = examine(str(folder))
    assert not found.findings
    assert [file.opened for file in found.checkpoint.ranks] == [4]


def test_the_file_of_a_rank_is_judged_with_its_folder(whole: Path, tmp_path: Path) -> None:
    folder = copy(whole, tmp_path / "named")
    _overwrite(folder, KEY, bytes(30), -30)
    (finding,) = examine(str(rank_file(folder))).findings
    assert finding.site.file == str(rank_file(folder))
    assert f"the piece {KEY!r} at offset [0, 0]" in finding.message


def bytes_read(folder: Path) -> int:
    read = [0]
    plain = Ranges.read

    def counted(self: Ranges, begin: int, length: int) -> bytes:
        found = plain(self, begin, length)
        read[0] += len(found)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ranges, "read", counted)
        assert not examine(str(folder)).findings
    return read[0]


def in_rows(whole: Path, folder: Path, rows: int) -> Path:
    """The first layer with more rows, each a piece of its own."""
    made = copy(whole, folder)

    def lengthen(metadata: Any) -> None:
        metadata.state_dict_metadata[KEY].size = torch.Size((rows, 4))

    edit(made, lengthen)
    in_pieces(made, *((row, row + 1) for row in range(rows)))
    return made


def test_a_large_run_is_judged_in_linear_time(whole: Path, tmp_path: Path) -> None:
    few = bytes_read(in_rows(whole, tmp_path / "few", 50))
    assert bytes_read(in_rows(whole, tmp_path / "many", 500)) < 11 * few


def test_what_only_its_own_rank_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import torch
    import torch.distributed.checkpoint as dcp

    state = {"weight": torch.ones(4), "step": torch.tensor(3), "frank_2": torch.ones(1)}
    dcp.save(state, checkpoint_id=tmp_path / "plain", no_dist=True)
    loader = {"dataloader": {"dp_rank_0": b"a", "dp_rank_1": b"b"}, "of": {"rank3": torch.ones(1)}}
    dcp.save(state | loader, checkpoint_id=tmp_path / "loader", no_dist=True)
    assert main(["doctor", str(tmp_path / "plain")]) == 0
    assert "; its tensors load on any number of ranks\n" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "loader")]) == 0
    out = capsys.readouterr().out
    assert "of these each rank loads its own: 'dataloader.dp_rank_*' of 2\n" in out
