"""Thousands of damaged files: no crash, and nothing is fine that the real loader cannot load."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("huggingface_hub")

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file

from tensortrail.doctor.checkpoint.examine import examine
from tests.doctor.checkpoint.fuzzing import OLD, SAFETENSORS, TORCH, Mutation, samples
from tests.doctor.checkpoint.loaders import Loader
from tests.doctor.checkpoint.test_folders import gguf
from tests.doctor.checkpoint.written import INDEX, weights, write_all

FEW, MANY = 90, 2600
LOADED_BUT_REPORTED = {
    "CKP801": "torch does not read the comment of an archive, which ends too early",
    "CKP802": "torch searches the archive from its end and reads over what follows",
    "CKP804": "zeros over the padding at the end of an archive",
    "CKP805": "a field of an entry that no format knows; some readers take it for theirs",
    "CKP806": "readers take the last of two equal keys",
    "CKP809": "the library copies what is not aligned",
    "CKP810": "torch does not look at records that it does not need, nor at the checksum fields",
    "CKP811": "names that are imported and never called",
    "CKP812": "a storage that no tensor needs to its end",
    "CKP814": "tensors without values load",
}
"""Files that load all the same, by the check that speaks, and why it does."""


def loads(path: Path) -> bool:
    try:
        if path.suffix == ".safetensors":
            load_file(path)
        else:
            torch.load(path, map_location="cpu", weights_only=True)
    except Exception:
        return False
    return True


Base = tuple[str, str, Sequence[Mutation]]
BASES: Sequence[Base] = (
    ("single", "model.safetensors", SAFETENSORS),
    ("torch", "pytorch_model.bin", TORCH),
    ("old", "pytorch_model.bin", OLD),
)


@pytest.mark.parametrize(
    ("base", "count"),
    [*((base, FEW) for base in BASES)]
    + [pytest.param(base, MANY, marks=pytest.mark.complete) for base in BASES],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
@pytest.mark.filterwarnings("ignore")
def test_nothing_is_fine_that_the_library_cannot_load(
    tmp_path: Path, base: Base, count: int
) -> None:
    kind, name, mutations = base
    write_all(tmp_path / "whole")
    content = (tmp_path / "whole" / kind / name).read_bytes()
    path = tmp_path / name
    seen: Counter[str] = Counter()
    for number, sample in enumerate(samples(content, mutations, count)):
        path.write_bytes(sample)
        found = examine(str(path))
        told = {finding.code for finding in found.findings}
        fine = bool(found.ran) and not told and not found.problems
        loaded = loads(path)
        assert loaded or not fine, f"sample {number} is judged fine and cannot be loaded"
        if loaded and not fine:
            assert told & LOADED_BUT_REPORTED.keys(), f"sample {number} loads; reported: {told}"
        seen[f"{'loads' if loaded else 'fails'}, {'fine' if fine else 'reported'}"] += 1
    assert seen["fails, reported"] > count // 3
    assert seen.total() == count


JUDGED = ((INDEX, "from_pretrained"), (".metadata", "dcp"), ("__0_0.distcp", "dcp"))


def written(place: Path, kind: str) -> Path:
    write_all(place / "whole")
    if kind == "from_pretrained":
        from tests.doctor.checkpoint.damaged_model import Config

        Config().save_pretrained(place / "whole" / "sharded")
        return place / "whole" / "sharded"
    dcp.save(weights(), checkpoint_id=str(place / "ranks"), no_dist=True)
    return place / "ranks"


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [(".metadata", "dcp", 18), ("__0_0.distcp", "dcp", 18)]
    + [pytest.param(name, kind, MANY, marks=pytest.mark.complete) for name, kind in JUDGED],
)
@pytest.mark.filterwarnings("ignore")
def test_folders_are_judged_as_their_loader_takes_them(
    tmp_path: Path, name: str, kind: str, count: int
) -> None:
    if kind == "from_pretrained":
        pytest.importorskip("transformers")
    folder, loader = written(tmp_path, kind), Loader(kind)
    content = (folder / name).read_bytes()
    seen: Counter[str] = Counter()
    try:
        assert loader.loads(folder)
        for sample in samples(content, OLD, count):
            (folder / name).write_bytes(sample)
            found = examine(str(folder))
            fine = not found.findings and not found.problems
            seen[f"{'loads' if loader.loads(folder) else 'fails'}, fine: {fine}"] += 1
    finally:
        loader.close()
    missed = seen["fails, fine: True"]
    assert seen["fails, fine: False"] > count // 4
    assert not missed


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *((name, FEW) for name in ("model.gguf", ".metadata", INDEX)),
        *(
            pytest.param(name, MANY, marks=pytest.mark.complete)
            for name in ("model.gguf", ".metadata", INDEX)
        ),
    ],
)
def test_whatever_is_read_there_is_an_answer(tmp_path: Path, name: str, count: int) -> None:
    """Where the loader would run what it reads, or none is here, the reader only has to hold."""
    write_all(tmp_path / "whole")
    contents = {
        "model.gguf": gguf(),
        ".metadata": pickle.dumps({"state_dict_metadata": {}, "storage_data": {}, "more": [1.5]}),
        INDEX: (tmp_path / "whole" / "sharded" / INDEX).read_bytes(),
    }
    reported = 0
    for sample in samples(contents[name], OLD, count):
        (tmp_path / name).write_bytes(sample)
        found = examine(str(tmp_path / name))
        assert found.ran
        reported += bool(found.findings or found.problems)
    assert reported > count // 3
