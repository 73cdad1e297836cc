"""A file that is no file of weights, neither by its name nor by its first bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tensortrail.doctor.checkpoint.examine import examine

UNKNOWN = "of an unknown kind"


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"import torch\n", UNKNOWN), (b"short", UNKNOWN), (b'{"a": 1}', "JSON text")],
)
def test_it_is_said_to_be_none(content: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(content)
    (found,) = examine(str(path)).findings
    assert found.code == "CKP813"
    assert found.message == f"the file is {kind}, and its name is not that of weights"


def test_weights_under_any_name_are_read(tmp_path: Path) -> None:
    path = tmp_path / "3f2a9c"
    save_file({"x": torch.ones(2)}, path)
    assert not examine(str(path)).findings
    path.write_bytes(path.read_bytes()[:-2])
    (found,) = examine(str(path)).findings
    assert found.code == "CKP801"
