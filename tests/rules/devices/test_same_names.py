"""Classes of a project that go by the names of torch's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check

OWN = """\
class Tensor{base}:
    @property
    def device(self):
        return self.backend.device_of(self)
"""
ASKED = """\
import torch
from net.kinds import Tensor


def masked(one, mask):
    if isinstance(one, Tensor):
        return mask if one.device == "cpu" else one


def chosen(one: Tensor, mask):
    return mask if one.device == "cpu" else one
"""


@pytest.mark.parametrize(
    ("kinds", "lines"),
    [
        (OWN.format(base=""), []),
        ("import torch\n" + OWN.format(base="(torch.Tensor)"), [7, 11]),
        ("from torch import Tensor\n", [7, 11]),
    ],
)
def test_a_tensor_of_the_project_may_be_another(
    tmp_path: Path, kinds: str, lines: list[int]
) -> None:
    (tmp_path / "net").mkdir()
    for name, text in {"__init__.py": "", "kinds.py": kinds, "use.py": ASKED}.items():
        (tmp_path / "net" / name).write_text(text)
    request = CheckRequest(paths=(str(tmp_path),), cache_dir=None, codes=frozenset({"DEV501"}))
    assert [each.site.line for each in check(request).findings] == lines


def test_imports_begin_in_a_project_whose_top_is_a_package(tmp_path: Path) -> None:
    for folder in (tmp_path / "whole", tmp_path / "whole" / "net"):
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    (tmp_path / "whole" / "setup.py").write_text("")
    (tmp_path / "whole" / "net" / "kinds.py").write_text(OWN.format(base=""))
    (tmp_path / "whole" / "net" / "use.py").write_text(ASKED)
    path = str(tmp_path / "whole")
    request = CheckRequest(paths=(path,), cache_dir=None, codes=frozenset({"DEV501"}))
    assert not check(request).findings
