"""The Python blocks of a page, run as one program, and the text blocks under them.

`python -m tests.page_run docs/api.md` writes what each block prints into the block under it."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from tests import warm

BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BETWEEN = "---- the next block ----"


def current(page: str) -> str:
    """The page with what its blocks print now."""
    programs = [block for kind, block in BLOCK.findall(page) if kind == "python"]
    printed = iter(_printed(programs))
    said = ""

    def replaced(match: re.Match[str]) -> str:
        nonlocal said
        if match[1] == "python":
            said = next(printed)
            return match[0]
        return f"```text\n{said}```"

    return BLOCK.sub(replaced, page)


def _printed(programs: list[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(f'print("{BETWEEN}")\n'.join(programs), encoding="utf-8")
        done = warm.run([program.name], Path(folder))
    assert not done.returncode, done.stderr
    return done.stdout.split(f"{BETWEEN}\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        file.write_text(current(file.read_text(encoding="utf-8")), encoding="utf-8")
