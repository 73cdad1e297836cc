"""What can be mended is mended into a new folder that loads; the rest is refused, whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("huggingface_hub")

import torch
from safetensors.torch import load_file, save_file

from tensortrail.cli import main
from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.damaging import single
from tests.doctor.checkpoint.written import INDEX, copy, edit_index, shards, weights

MENDED = (
    "bytes_appended",
    "data_not_aligned",
    "names_of_a_compiled_module",
    "index_is_a_pointer",
    "index_key_twice",
    "entry_for_another_shard",
    "entry_removed",
    "entries_of_two_shards_swapped",
    "older_shards_left",
    "index_removed",
    "total_size_of_another_type",
    "index_cut",
    "index_without_map",
    "index_with_numbers",
)
REFUSED = {
    "cut_in_the_data": "CKP801",
    "pointer": "CKP803",
    "shard_removed": "only 5 of 6 shards",
    "index_and_shard_removed": "only 5 of 6 shards",
    "entry_for_nothing": "no shard holds 'layers.9.norm.weight'",
    "entry_above_the_folder": "no shard holds 'more'",
    "single_file_left": "are both here",
    "shard_in_the_place_of_another": "CKP828",
    "weight_in_a_second_shard": "two shards hold a weight of the same name",
    "archive_cut": "CKP801",
    "archive_with_more_behind": "only a folder of safetensors",
}
ALL = {damage.name: damage for damage in DAMAGES}
Told = tuple[int, str]


def loaded(folder: Path) -> dict[str, Any]:
    return {
        key: value
        for path in folder.glob("*.safetensors")
        for key, value in load_file(path).items()
    }


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file()}


def mended(folder: Path, out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> Told:
    code = main(["doctor", str(folder), "--repair", str(out), *more])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("name", MENDED)
def test_what_can_be_mended(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = copy(whole / ALL[name].base, tmp_path / "damaged")
    (folder / "config.json").write_text('{"a": 1}')
    ALL[name].do(folder)
    before = contents(folder)
    code, told = mended(folder, tmp_path / "out", capsys)
    assert code == 0, told
    assert "found nothing" in told
    assert contents(folder) == before
    result = loaded(tmp_path / "out")
    expected = weights()
    assert result.keys() == expected.keys()
    assert all(torch.equal(result[key], expected[key]) for key in expected)
    assert (tmp_path / "out" / "config.json").read_text() == '{"a": 1}'
    assert main(["doctor", str(tmp_path / "out")]) == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["damaged", "out"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_mended_is_refused(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    folder = copy(whole / ALL[name].base, tmp_path / "damaged")
    ALL[name].do(folder)
    before = contents(folder)
    code, told = mended(folder, tmp_path / "out", capsys)
    assert code == 1
    assert REFUSED[name] in told
    assert contents(folder) == before
    assert [each.name for each in tmp_path.iterdir()] == ["damaged"]


@pytest.mark.parametrize(
    ("name", "offered"), [("index_cut", True), ("shard_removed", False), ("pointer", False)]
)
def test_a_repair_is_offered_where_there_is_one(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, offered: bool
) -> None:
    folder = copy(whole / ALL[name].base, tmp_path / "damaged")
    ALL[name].do(folder)
    assert main(["doctor", str(folder)]) == 1
    told = f"a repaired copy: tensortrail doctor {folder} --repair NEW_FOLDER"
    assert (told in capsys.readouterr().err) is offered


def test_a_whole_checkpoint_is_not_written_again(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mended(whole / "sharded", tmp_path / "out", capsys)[0] == 0
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_there_stays(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy(whole / "sharded", tmp_path / "damaged")
    (folder / INDEX).unlink()
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("out", "link"):
        code, told = mended(folder, tmp_path / name, capsys)
        assert code == 1
        assert "is there already" in told
    assert not list((tmp_path / "out").iterdir())
    assert not (tmp_path / "nowhere").exists()


def test_linked_files_are_the_same_file(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy(whole / "sharded", tmp_path / "damaged")
    (folder / INDEX).unlink()
    assert mended(folder, tmp_path / "out", capsys, "--link")[0] == 0
    first = shards(folder)[0]
    assert os.path.samefile(first, tmp_path / "out" / first.name)


def test_links_out_of_the_folder_are_left_out(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy(whole / "sharded", tmp_path / "damaged")
    (folder / INDEX).unlink()
    (tmp_path / "secret").write_text("a password")
    (folder / "notes.txt").symlink_to(tmp_path / "secret")
    code, told = mended(folder, tmp_path / "out", capsys)
    assert code == 0
    assert "left out notes.txt" in told
    assert not (tmp_path / "out" / "notes.txt").exists()


def test_names_in_an_index_lead_nowhere_else(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every weight is in a shard; the index says it is elsewhere, and that is not followed."""
    folder = copy(whole / "sharded", tmp_path / "damaged")
    save_file({"head.weight": torch.zeros(16, 8)}, tmp_path / "evil.safetensors")
    edit_index(
        folder, lambda index: index["weight_map"].update({"head.weight": "../evil.safetensors"})
    )
    code, told = mended(folder, tmp_path / "out", capsys)
    assert code == 0, told
    assert torch.equal(loaded(tmp_path / "out")["head.weight"], weights()["head.weight"])
    assert not single(tmp_path / "out").exists()
