"""What every attack needs: a project, something outside of it that must stay, and the command."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from tensortrail.cli import main

BAD = 'def f(t):\n    return t.weight.device == "meta"\nif __name__ == "__main__": f(input)\n'
FIXED = BAD.replace(".device", ".device.type")
CLEAN = "x = 1\n"
FIX = ("--fix", "--unsafe-fixes")


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    def found(self, name: str) -> list[str]:
        """The codes that were found in a file."""
        lines = [line for line in self.out.splitlines() if line.startswith((name, f"./{name}"))]
        return [line.split(": ", 1)[1].split()[0] for line in lines]


class Attacked:
    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.project = folder / "project"
        self.outside = folder / "outside"
        self.project.mkdir()
        self.outside.mkdir()
        (self.project / ".git").mkdir()
        (self.outside / "precious.py").write_text(BAD)
        (self.outside / "profile").write_text("export A=1\n")
        self._capsys = capsys
        monkeypatch.chdir(self.project)
        self._before = self._seen_outside()

    def check(self, *arguments: str, cache: bool = False) -> Done:
        self._capsys.readouterr()
        mode = () if cache else ("--no-cache",)
        code = main(["check", *arguments, *mode, "--output-format", "concise"])
        shown = self._capsys.readouterr()
        return Done(code, shown.out, shown.err)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def nothing_happened_outside(self) -> bool:
        return self._seen_outside() == self._before

    def _seen_outside(self) -> dict[str, bytes]:
        folder = self.outside
        around = {str(each): b"" for each in sorted(folder.parent.iterdir())}
        return around | {
            str(path): path.read_bytes() if path.is_file() else os.fsencode(path)
            for path in sorted(folder.rglob("*"))
        }
