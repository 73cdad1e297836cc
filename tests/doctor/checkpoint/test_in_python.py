"""`tensortrail.doctor.examine`: the checks from a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensortrail import doctor
from tests.doctor.checkpoint.test_folders import write_safetensors


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    write_safetensors(tmp_path / "model.safetensors", {"a": [2, 2], "b": [2, 2]})
    return tmp_path


def test_what_is_whole_is_fine(whole: Path) -> None:
    found = doctor.examine(whole)
    assert found.fine
    assert "file-truncated" in {check.name for check in found.ran}


def test_chosen_checks_alone_run(whole: Path) -> None:
    path = whole / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    found = doctor.examine(whole)
    assert not found.fine
    assert [finding.code for finding in found.findings] == ["CKP801"]
    others = doctor.examine(whole, codes={"CKP806"})
    assert [check.code for check in others.ran] == ["CKP806"]
    assert others.fine


def test_what_could_not_be_asked_is_not_fine(whole: Path) -> None:
    (whole / "config.json").write_text(json.dumps({"hidden_size": 2}))
    found = doctor.examine(whole, manifest=True)
    assert not found.findings
    assert not found.fine
    assert "the manifest was not verified" in found.problems[0]


def test_where_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no such file"):
        doctor.examine(tmp_path / "nothing")
    assert not doctor.examine(tmp_path).fine
