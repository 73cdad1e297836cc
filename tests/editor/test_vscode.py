"""The extension for VS Code: what it offers is what the server takes, and its own tests pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tensortrail.cli.server import SETTINGS
from tensortrail.version import __version__

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
OWN = {"path"}
"""Settings that the extension reads itself."""
TYPES = {list: "array", str: "string", bool: "boolean"}


def test_its_settings_are_the_servers() -> None:
    told: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    properties = told["contributes"]["configuration"]["properties"]
    types = {name.removeprefix("tensortrail."): each["type"] for name, each in properties.items()}
    assert types.keys() - SETTINGS.keys() == OWN
    assert {name: TYPES[kind] for name, kind in SETTINGS.items()}.items() <= types.items()
    passed = (FOLDER / "src" / "extension.ts").read_text(encoding="utf-8")
    assert all(f'"{name}"' in passed for name in SETTINGS)
    assert told["main"] == "./out/extension.js"
    assert told["capabilities"]["untrustedWorkspaces"]["supported"] is False
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "](.." not in readme, "vsce packages no file with such a link"
    assert told["version"].split(".")[:1] == __version__.split(".")[:1]


@pytest.mark.complete
def test_it_builds_and_meets_the_server(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or not (FOLDER / "node_modules").is_dir():
        pytest.skip("needs npm ci in editors/vscode")
    program = tmp_path / "tensortrail"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tensortrail "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "TENSORTRAIL": str(program)}
    done = subprocess.run([npm, "test"], cwd=FOLDER, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "# skipped 0" in done.stdout
