"""`tensortrail check --show-places`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.cli import main

SOURCE = "import torch\n\ndef f(x: torch.Tensor):\n    y = torch.ones(3)\n    return x + y\n"


def test_each_line_has_its_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "some.py"
    path.write_text(SOURCE)
    assert main(["check", "--show-places", str(path)]) == 0
    lines, legend = (each.splitlines() for each in capsys.readouterr().out.split("\n\n"))
    assert len(lines) == 5
    assert [each.split()[0] for each in legend] == ["of(x)", "default"]
    assert lines[0] == "    1 import torch"
    assert lines[3].endswith("# y: default")
    assert lines[4].endswith("# x: of(x); y: default")


@pytest.mark.parametrize("source", ["def f(:\n", None])
def test_what_cannot_be_read_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str | None
) -> None:
    path = tmp_path / "broken.py"
    if source is not None:
        path.write_text(source)
    assert main(["check", "--show-places", str(path)]) == 2
    assert str(path) in capsys.readouterr().err


def test_the_terminal_is_safe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "hostile.py"
    path.write_text("# \x1b[2J\n" + SOURCE)
    assert main(["check", "--show-places", str(path)]) == 0
    assert "\x1b" not in capsys.readouterr().out
