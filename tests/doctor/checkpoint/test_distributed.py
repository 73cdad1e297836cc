"""Distributed checkpoints: whole as torch writes them, and each damage seen by one check."""

from __future__ import annotations

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


def in_two(metadata: Any, cut: int, again: int) -> None:
    """The first layer in two pieces that two ranks wrote."""
    key = "model.layers.0.weight"
    pieces = [chunk((0, 0), (cut, 4)), chunk((again, 0), (8 - again, 4))]
    metadata.state_dict_metadata[key].chunks = pieces
    (index,) = (each for each in metadata.storage_data if each.fqn == key)
    info = metadata.storage_data.pop(index)
    for number, piece in enumerate(pieces):
        half = info.length // 2
        part = type(info)(info.relative_path, info.offset + number * half, half)
        metadata.storage_data[MetadataIndex(key, piece.offsets, number)] = part


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
    edit(folder, lambda metadata: in_two(metadata, 4, 4))
    assert not examine(str(folder)).findings


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-500])


def _misplace(metadata: Any) -> None:
    first, second = list(metadata.storage_data.values())[:2]
    second.offset = first.offset


def _rename(metadata: Any, name: str) -> None:
    for info in metadata.storage_data.values():
        info.relative_path = name


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
        lambda folder: edit(folder, lambda metadata: in_two(metadata, 3, 4)),
    ),
    "pieces overlap": (
        "CKP845",
        lambda folder: edit(folder, lambda metadata: in_two(metadata, 5, 4)),
    ),
    "piece stored nowhere": (
        "CKP845",
        lambda folder: edit(
            folder, lambda metadata: metadata.storage_data.pop(list(metadata.storage_data)[-1])
        ),
    ),
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


def test_metadata_of_a_large_run_is_judged_in_linear_time(whole: Path, tmp_path: Path) -> None:
    """A tensor in 1,000 pieces."""
    folder = copy(whole, tmp_path / "large")

    def split(metadata: Any) -> None:
        key = "model.layers.0.weight"
        entry = metadata.state_dict_metadata[key]
        entry.size = torch.Size((1000, 4))
        entry.chunks = [chunk((row, 0), (1, 4)) for row in range(1000)]
        (index,) = (each for each in metadata.storage_data if each.fqn == key)
        info = metadata.storage_data.pop(index)
        for row in range(1000):
            place = MetadataIndex(key, torch.Size((row, 0)), row)
            metadata.storage_data[place] = type(info)(info.relative_path, info.offset + row, 1)

    edit(folder, split)
    assert not examine(str(folder)).findings


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
