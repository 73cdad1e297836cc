"""Shard rules, watching real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched


def test_placeholders_are_saved(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4))
        model[1].to("meta")
        for step in range(2):
            torch.save(model.state_dict(), folder + "/model.pt")  # flagged
        """,
        "SHD405",
    )
    finding = seen.only
    assert "`Sequential.1.weight` and `Sequential.1.bias` on meta" in finding.message
    assert "put there by `Tensor.to` at program.py:3" in finding.message
    assert dict(finding.evidence) == {"tensors": "2", "missing": "80 B"}
    assert "3: Sequential.1.weight moved cpu -> meta" in seen.steps


@pytest.mark.parametrize(
    "save",
    [
        "torch.save(whole.state_dict(), path)",
        "torch.save({k: v for k, v in half.state_dict().items() if not v.is_meta}, path)",
        "torch.save({k: v.shape for k, v in half.state_dict().items()}, path)",
        "half[1].to_empty(device='cpu'); torch.save(half.state_dict(), path)",
    ],
)
def test_data_is_saved(tmp_path: Path, save: str) -> None:
    watched(
        tmp_path,
        f"""\
        import torch
        whole = torch.nn.Linear(4, 4)
        half = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4, device="meta"))
        path = folder + "/model.pt"
        {save}
        """,
        "SHD405",
    )


INDEX = """\
import json
import torch
from safetensors.torch import save_file
weights = {name: torch.ones(4) for name in "abcd"}
def save(files, weight_map):
    for file, names in files.items():
        save_file({name: weights[name] for name in names}, f"{folder}/{file}")  # flagged
    with open(folder + "/model.safetensors.index.json", "w") as index:
        json.dump({"weight_map": weight_map}, index)
"""
WRONG = {
    "skipped when writing": (
        'save({"1": ["a"], "2": ["b"]}, {"a": "1", "b": "2", "c": "2"})',
        "it names 2 for `c`, which is in no file",
        "1",
    ),
    "left out of the index": (
        'save({"1": ["a"], "2": ["b", "c", "d"]}, {"a": "1", "b": "2"})',
        "`c` is in 2, and the index does not name it; and 1 more",
        "2",
    ),
    "named for another file": (
        'save({"1": ["a", "b"], "2": ["c"]}, {"a": "1", "b": "2", "c": "2"})',
        "it names 2 for `b`, which is in 1",
        "1",
    ),
    "written twice": (
        'save({"1": ["a", "b"], "2": ["b"]}, {"a": "1", "b": "2"})',
        "it names 2 for `b`, which is in 1 and 2",
        "1",
    ),
}


@pytest.mark.parametrize(("saves", "told", "count"), WRONG.values(), ids=WRONG.keys())
def test_an_index_that_is_not_what_was_written(
    tmp_path: Path, saves: str, told: str, count: str
) -> None:
    pytest.importorskip("safetensors")
    finding = watched(tmp_path, INDEX + saves, "SHD403").only
    assert finding.message == f"model.safetensors.index.json is not what was written: {told}"
    index = str(tmp_path / "model.safetensors.index.json")
    assert dict(finding.evidence) == {"index": index, "weights": count}


RIGHT = {
    "as it was written": 'save({"1": ["a"], "2": ["b"]}, {"a": "1", "b": "2"})',
    "mended before the end": (
        'save({"1": ["a"], "2": ["b"]}, {"a": "1"})\n'
        'save({"1": ["a"], "2": ["b"]}, {"a": "1", "b": "2"})'
    ),
    "gone since": (
        'save({"1": ["a"], "2": ["b"]}, {"a": "1"})\n__import__("os").remove(folder + "/2")'
    ),
    "of files that this program did not write": (
        'save({"1": ["a"], "2": ["b"]}, {"a": "1", "b": "2"})\n'
        'open(folder + "/other.safetensors.index.json", "w").write(\'{"weight_map": {"a": "9"}}\')'
    ),
    "no index at all": 'save({"1": ["a"]}, {})\nopen(f"{folder}/x.safetensors.index.json", "w")',
}


@pytest.mark.parametrize("saves", RIGHT.values(), ids=RIGHT.keys())
def test_an_index_that_is(tmp_path: Path, saves: str) -> None:
    pytest.importorskip("safetensors")
    watched(tmp_path, INDEX.replace("  # flagged", "") + saves, "SHD403")


def test_a_writer_that_refuses_placeholders(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    seen = watched(
        tmp_path,
        """\
        import torch
        from safetensors.torch import save_file
        model = torch.nn.Linear(4, 4).to("meta")
        save_file(model.state_dict(), folder + "/model.safetensors")  # flagged
        """,
        "SHD405",
    )
    assert isinstance(seen.error, NotImplementedError)
    assert f"{tmp_path}/model.safetensors cannot be written" in seen.only.message
    assert "put there by `Tensor.to` at program.py:3" in seen.only.message
