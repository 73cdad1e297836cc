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
    assert kept.named_in(package, "Scaled", "a.py") is None
    (package / "b.py").write_text("Scaled(3)")
    kept.forget(str(package / "b.py"))
    assert kept.named_in(package, "Scaled", "a.py") == str(package / "b.py")


TRIED = """
class Other:
    pass

if __name__ == "__main__":
    {tried}
"""


@pytest.mark.parametrize(
    ("files", "tried", "expected"),
    [
        ({"net/b.py": "from net.a import Other\n"}, "Scaled(3)", Severity.NOTE),
        ({"net/b.py": "from net.a import Other\n"}, "main()", Severity.WARNING),
        ({}, "Scaled(3)", Severity.WARNING),
    ],
)
def test_a_library_may_try_its_classes_out(
    tmp_path: Path, files: dict[str, str], tried: str, expected: Severity
) -> None:
    main = "def main():\n    Scaled(3)\n"
    text = SCALED.format(above="") + TRIED.format(tried=tried) + main * (tried == "main()")
    assert severity(tmp_path, {**files, "net/a.py": text}) is expected


def test_what_only_the_unused_uses_is_unused(tmp_path: Path) -> None:
    text = SCALED.format(above="") + "\nclass Twice:\n    def __init__(self):\n        Scaled(3)\n"
    assert severity(tmp_path, {"net/a.py": text}) is Severity.NOTE
    assert severity(tmp_path, {"net/a.py": text, "net/b.py": "Twice()"}) is Severity.WARNING
