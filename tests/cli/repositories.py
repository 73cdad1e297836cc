"""Repositories that tests make with the real git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def git(*arguments: str) -> bytes:
    who = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *who, *arguments], check=True, capture_output=True).stdout


def commit(**files: str) -> None:
    """The texts of `NAME.py` files, with all that lies there."""
    for name, text in files.items():
        Path(f"{name}.py").write_text(text, encoding="utf-8")
    git("add", ".")
    git("commit", "-q", "-m", "more")


def begun(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty repository, in which the test goes on."""
    monkeypatch.chdir(folder)
    for name in [each for each in os.environ if each.startswith("GIT_")]:
        monkeypatch.delenv(name)
    git("init", "-q", "-b", "main")
