"""The distributions: a wheel and a source archive, and the tool that is installed from them."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("hatchling")

from tensortrail.version import __version__

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
DATA = {each.relative_to(ROOT).as_posix() for each in (ROOT / "tensortrail").rglob("*.toml")}
DATA |= {each.relative_to(ROOT).as_posix() for each in (ROOT / "tensortrail").rglob("*.py")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "hatchling", "build", "-d", str(folder), cwd=ROOT)
    return folder


def run(*command: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(path)} if path else None
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    return done


def test_both_hold_the_whole_package(built: Path) -> None:
    wheel = zipfile.ZipFile(built / f"tensortrail-{__version__}-py3-none-any.whl").namelist()
    assert set(wheel) >= DATA
    assert not [each for each in wheel if each.startswith(("tests/", "benchmarks/"))]
    with tarfile.open(built / f"tensortrail-{__version__}.tar.gz") as archive:
        inside = {each.partition("/")[2] for each in archive.getnames()}
    assert inside >= {*DATA, "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml"}


def test_the_installed_wheel_checks_a_file(built: Path, tmp_path: Path) -> None:
    there = tmp_path / "installed"
    with zipfile.ZipFile(built / f"tensortrail-{__version__}-py3-none-any.whl") as wheel:
        wheel.extractall(there)
    (tmp_path / "a.py").write_text("import torch\nx = torch.ones(2, device='cuda').numpy()\n")
    where = run("-c", "import tensortrail; print(tensortrail.__file__)", cwd=tmp_path, path=there)
    assert where.stdout.startswith(str(there))
    done = run("-m", "tensortrail", "check", "a.py", "--isolated", cwd=tmp_path, path=there)
    assert "DEV503" in done.stdout
