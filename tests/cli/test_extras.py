"""What a command says where a package of its extra is not installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = """
import sys
package, *words = sys.argv[1:]
sys.modules[package] = None  # as if it were not there
from tensortrail.cli import main
sys.exit(main(words))
"""


def told(folder: Path, package: str, *words: str) -> str:
    (folder / "train.py").write_text("print('ran')\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, package, *words],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    return done.stderr


@pytest.mark.parametrize(
    "command",
    ["runs", "report", "why x", "fix", "settings", "fleet", "trace train.py", "demo new"],
)
def test_commands_about_runs_name_their_extra(command: str, tmp_path: Path) -> None:
    said = told(tmp_path, "msgpack", *command.split())
    assert "msgpack" in said.splitlines()[0]
    assert said.rstrip().endswith("pip install 'tensortrail[trace]'")
    assert "defect" not in said


def test_the_server_names_its_extra(tmp_path: Path) -> None:
    assert told(tmp_path, "pygls", "server") == (
        "tensortrail: error: pygls is not installed here\n"
        "  the server needs it: pip install 'tensortrail[editor]'\n"
    )


def test_a_placement_needs_torch(tmp_path: Path) -> None:
    said = told(tmp_path, "torch", "doctor", "placement", "somewhere", "--gpu", "24GiB")
    assert said.rstrip().endswith("pip install 'tensortrail[trace]'")
