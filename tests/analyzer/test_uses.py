"""What nothing of a project names harms nobody who runs it: a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.facts import uses
from tensortrail.analyzer.judging.engine import check
from tensortrail.findings import Severity

SCALED = """
import torch
from torch import nn

{above}class Scaled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)

    def forward(self, x):
        return self.mix(x) * torch.linspace(0, 1, 3)
"""


def severity(folder: Path, files: dict[str, str], above: str = "") -> Severity:
    for name, text in (
        {"net/__init__.py": "", "net/a.py": SCALED.format(above=above)} | files
    ).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    paths = (str(folder / "net"),)
    request = CheckRequest(paths, codes=frozenset({"DEV521"}), cache_dir=None, jobs=1)
    (found,) = check(request).findings
    return found.severity


@pytest.mark.parametrize(
    "files",
    [
        {"net/b.py": "from net.a import Scaled\n"},
        {"train.py": "from net import a\nmodel = a.Scaled(3)\n"},
        {"pyproject.toml": "", "configs/base.yaml": "target: net.a.Scaled\n"},
        {"setup.py": "", "demos/try.ipynb": '{"cells": ["Scaled(3)"]}'},
    ],
)
def test_what_another_file_names_is_used(tmp_path: Path, files: dict[str, str]) -> None:
    assert severity(tmp_path, files) is Severity.WARNING


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"net/b.py": "class Scaled2: ...  # not Scaled\n"},
        {"setup.py": "", "tests/test_a.py": "from net.a import Scaled\n"},
    ],
)
def test_what_no_other_file_names_is_a_note(tmp_path: Path, files: dict[str, str]) -> None:
    assert severity(tmp_path, files) is Severity.NOTE


@pytest.mark.parametrize("above", ["@registered\n", "MODELS = ['Scaled']\n\n"])
def test_its_own_file_may_register_it(tmp_path: Path, above: str) -> None:
    assert severity(tmp_path, {}, above) is Severity.WARNING


def test_of_too_much_text_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "_MOST_BYTES", 10)
    assert severity(tmp_path, {}) is Severity.WARNING


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "b.py").write_text("")
    kept = uses.Uses()
    assert kept.named_in(str(package), "Scaled", "a.py") is None
    (package / "b.py").write_text("Scaled(3)")
    kept.forget(str(package / "b.py"))
    assert kept.named_in(str(package), "Scaled", "a.py") == str(package / "b.py")


@pytest.mark.parametrize(
    ("given", "expected"), [("x", Severity.NOTE), ("x, True", Severity.WARNING)]
)
def test_a_static_method_may_never_be_asked_for_it(
    tmp_path: Path, given: str, expected: Severity
) -> None:
    text = f"""
import torch
from torch import nn

class Shifted(nn.Module):
    @staticmethod
    def _shift(x, lower=False):
        if lower:
            x = x * torch.ones(x.size(0), x.size(1))
        return x

    def forward(self, x):
        return self._shift({given})
"""
    assert severity(tmp_path, {"net/a.py": text, "net/b.py": "Shifted()"}) is expected


SWITCHED = """
import torch
from torch import nn

class Shifted(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.soft, self.mix = VALUE, nn.Linear(n, n)
        self.soft = VALUE

    def forward(self, x):
        if self.soft:
            return self.mix(x) * torch.linspace(0, 1, 3)
        return x
"""


@pytest.mark.parametrize(
    ("value", "other", "expected"),
    [
        ("False", "Shifted(3)", Severity.NOTE),
        ("False", "Shifted(3).soft = True", Severity.WARNING),
        ("n > 3", "Shifted(3)", Severity.WARNING),
    ],
)
def test_what_a_class_switches_off(
    tmp_path: Path, value: str, other: str, expected: Severity
) -> None:
    text = SWITCHED.replace("VALUE", value)
    text = text.replace(f"self.soft, self.mix = {value}, nn.Linear", "self.mix = nn.Linear")
    assert severity(tmp_path, {"net/a.py": text, "net/b.py": other}) is expected
