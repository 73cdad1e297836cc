"""`check --with-trail`: the lint and a run of the same code speak together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import warm

pytest.importorskip("torch")

PROGRAM = """\
import torch

rows = torch.rand(4000, 1000)
torch.save({saved}, "row.pt"){comment}
"""


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    done = warm.run(["-m", "tensortrail", *arguments], folder)
    return done.returncode, done.stdout + done.stderr


def recorded(folder: Path, comment: str = "", saved: str = "rows[:1]") -> Path:
    (folder / "prog.py").write_text(PROGRAM.format(comment=comment, saved=saved))
    run(folder, "trace", "--quiet", "--directory", "run", "prog.py")
    return folder


@pytest.mark.complete  # a program of its own
def test_what_only_the_run_shows_is_added(tmp_path: Path) -> None:
    recorded(tmp_path, saved='getattr(rows, "narrow")(0, 0, 1)')
    assert "STO207" not in run(tmp_path, "check", "--no-cache", ".")[1]
    code, text = run(tmp_path, "check", "--no-cache", ".", "--with-trail", "run")
    assert code == 1
    assert "STO207" in text
    assert "prog.py:4" in text


def test_what_both_show_is_sure(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        'import torch\nmodel = torch.nn.Linear(3, 2, device="meta")\n'
        'torch.save(model.state_dict(), "model.pt")\n'
    )
    run(tmp_path, "trace", "--quiet", "--directory", "run", "prog.py")
    code, text = run(tmp_path, "check", "--no-cache", ".", "--with-trail", "run")
    assert code == 1
    assert text.count("SHD405") == 1
    assert "the run confirmed this" in text


@pytest.mark.parametrize(
    ("comment", "options"),
    [
        ("  # tensortrail: ignore[STO207] on purpose", []),
        ("", ["--ignore", "STO207"]),
        ("", ["--select", "OFF"]),
    ],
)
def test_comments_and_options_silence_it(tmp_path: Path, comment: str, options: list[str]) -> None:
    recorded(tmp_path, comment)
    code, text = run(tmp_path, "check", "--no-cache", ".", "--with-trail", "run", *options)
    assert (code, "STO207" in text) == (0, False)


def test_a_run_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text("x = 1\n")
    code, text = run(tmp_path, "check", ".", "--with-trail", "nowhere")
    assert code == 2
    assert "--with-trail nowhere" in text


def test_fix_applies_what_the_run_suggests(tmp_path: Path) -> None:
    (tmp_path / "prog.py").write_text(
        "import torch\n\nrows = torch.rand(4000, 1000)\ntorch.save(rows[:1], 'row.pt')\n"
    )
    run(tmp_path, "trace", "--quiet", "--directory", "run", "prog.py")
    code, text = run(tmp_path, "fix", "run", "--diff", "--unsafe-fixes")
    assert code == 1
    assert "+torch.save(rows[:1].clone(), 'row.pt')" in text
    assert run(tmp_path, "fix", "run", "--unsafe-fixes")[0] == 0
    assert "rows[:1].clone()" in (tmp_path / "prog.py").read_text()
    again = run(tmp_path, "fix", "run", "--unsafe-fixes")[1]
    assert "0 findings fixed" in again
    assert "prog.py:4: it changed since the run: trace it again" in again
