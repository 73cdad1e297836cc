"""A whole checkpoint is judged fine; damaged in one way, the right check speaks and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("huggingface_hub")

from tensortrail.doctor.checkpoint.examine import examine
from tensortrail.findings import Safety, Severity
from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.damaging import Damage
from tests.doctor.checkpoint.written import copy


@pytest.mark.parametrize("base", ["single", "sharded", "torch", "old"])
def test_a_whole_checkpoint_is_fine(whole: Path, base: str) -> None:
    found = examine(str(whole / base))
    assert not found.findings
    assert not found.problems
    assert len(found.ran) >= 10
    assert sum(len(file.tensors) for file in found.checkpoint.files) == 14


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: f"{damage.base}-{damage.name}")
def test_the_right_check_speaks_and_no_other(whole: Path, tmp_path: Path, damage: Damage) -> None:
    folder = copy(whole / damage.base, tmp_path / "damaged")
    damage.do(folder)
    found = examine(str(folder))
    told = [(finding.code, finding.message) for finding in found.findings]
    assert [code for code, _ in told] == [damage.code], told
    assert not found.problems
    (finding,) = found.findings
    (fix,) = finding.fixes
    assert fix.safety is Safety.DISPLAY
    assert fix.description
    assert Path(finding.site.file).parent == folder


def test_a_weight_in_no_shard_is_told_beside_one_in_another(whole: Path, tmp_path: Path) -> None:
    folder = copy(whole / "sharded", tmp_path / "damaged")
    for damage in DAMAGES:
        if damage.name in ("entry_for_another_shard", "entry_for_nothing"):
            damage.do(folder)
    nowhere, elsewhere = examine(str(folder)).findings
    assert (nowhere.severity, elsewhere.severity) == (Severity.ERROR, Severity.WARNING)
    assert "'layers.9.norm.weight' is in no shard" in nowhere.message
    assert "'layers.2.norm.weight' is in model-" in elsewhere.message


def test_there_are_enough_damages_and_none_twice() -> None:
    assert len(DAMAGES) >= 40
    assert len({damage.name for damage in DAMAGES}) == len(DAMAGES)
