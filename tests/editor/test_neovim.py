"""Neovim, headless, with its own client and what the documentation has people configure."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

RISKY = "def f(t):\n    '𝄞'; return t.weight.device == 'meta'\n"
DOCS = Path(__file__).parents[2] / "docs" / "editor.md"
CONFIGURATIONS = re.findall(r"```lua\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
OLDEST = """
local id = vim.lsp.start_client({
  name = "tensortrail", cmd = { "tensortrail", "server" }, root_dir = vim.fn.getcwd(),
})
vim.api.nvim_create_autocmd("FileType", {
  pattern = "python", callback = function(args) vim.lsp.buf_attach_client(args.buf, id) end,
})
"""
"""For 0.7: by the functions that the later ones are made of."""


def neovim() -> tuple[str, tuple[int, ...]]:
    program = os.environ.get("TENSORTRAIL_NVIM") or shutil.which("nvim")
    if program is None:
        pytest.skip("nvim is not on PATH, and TENSORTRAIL_NVIM names none")
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    version = re.match(r"NVIM v(\d+)\.(\d+)", told.stdout)
    assert version
    return program, tuple(map(int, version.groups()))


def seen(program: str, configuration: str, folder: Path) -> dict[str, object]:
    tool = folder / "bin" / "tensortrail"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tensortrail "$@"\n')
    tool.chmod(0o755)
    (folder / "init.lua").write_text(f'vim.cmd("filetype plugin on")\n{configuration}')
    (folder / "pyproject.toml").write_text("[tool.tensortrail]\n")
    (folder / "a.py").write_text(RISKY, encoding="utf-8")
    script = Path(__file__).with_name("neovim.lua")
    path = f"{tool.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(folder), "SEEN": str(folder / "seen.json")}
    done = subprocess.run(
        [program, "--headless", "-n", "-i", "NONE", "-u", "init.lua", "-S", str(script), "a.py"],
        cwd=folder, env=env, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, object] = json.loads((folder / "seen.json").read_text(encoding="utf-8"))
    return told


@pytest.mark.complete
@pytest.mark.parametrize("configuration", ["0.11", "0.8", "0.7"])
def test_a_finding_its_story_and_its_fix(configuration: str, tmp_path: Path) -> None:
    program, version = neovim()
    if version < (0, int(configuration[2:])):
        pytest.skip(f"that configuration is for {configuration} and later, this is {version}")
    if configuration == "0.7" and version >= (0, 11):
        pytest.skip("later versions have the other two")
    named = dict(zip(("0.11", "0.8"), CONFIGURATIONS, strict=True))
    told = seen(program, named.get(configuration, OLDEST), tmp_path)
    assert (told["count"], told["code"], told["source"]) == (1, "DEV501", "tensortrail")
    assert (told["line"], told["column"]) == (1, 19), "Neovim counts bytes"
    assert "DEV501" in str(told["hover"])
    assert "Why is this bad?" in str(told["hover"])
    titles = told["titles"]
    assert isinstance(titles, list)
    assert titles[0].startswith("DEV501: compare the type (unsafe)")
    assert told["text"] == RISKY.replace(".device", ".device.type").rstrip("\n")
