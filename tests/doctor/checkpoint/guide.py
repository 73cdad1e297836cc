"""The commands of docs/guides/doctor.md and what they print.

`python -m tests.doctor.checkpoint.guide` writes it anew."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.written import copy, write_all

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "doctor.md"
BLOCK = re.compile(
    r"(<!-- damage: ?(\w*) -->\n```sh\n(tensortrail [^\n]*)\n```\n\n```\n)(.*?)(?=```)", re.DOTALL
)

SETTINGS = re.compile(
    r"(```yaml\n# (\S+)\n(.*?)```\n\n<!-- settings: \2 -->\n"
    r"```sh\n(tensortrail [^\n]*)\n```\n\n```\n)(.*?)(?=```)",
    re.DOTALL,
)


def current(page: str) -> str:
    """The page with what its commands print now."""
    page = SETTINGS.sub(lambda found: found[1] + of_settings(found[2], found[3], found[4]), page)
    return BLOCK.sub(lambda found: found[1] + printed(found[2], found[3]), page)


def of_settings(name: str, text: str, command: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / name).write_text(text, encoding="utf-8")
        return ran(command, place)


def printed(name: str, command: str) -> str:
    damage = next((each for each in DAMAGES if each.name == name), None)
    base = damage.base if damage else "sharded"
    with tempfile.TemporaryDirectory() as place:
        write_all(Path(place) / "whole")
        folder = copy(Path(place) / "whole" / base, Path(place) / "my-model")
        if damage is not None:
            damage.do(folder)
        return ran(command, place)


def ran(command: str, place: str) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(words, cwd=place, env=env, capture_output=True, text=True).stdout


if __name__ == "__main__":
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
