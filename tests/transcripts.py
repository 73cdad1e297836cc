"""Blocks of a page that show commands and what they print, or lines of the programs they run.

    <!-- run in examples/run/offload -->       before a block of commands that begin with `$ `
    <!-- from examples/run/offload/norm.py --> before lines of that file, each with its number

`python -m tests.transcripts docs/guides/offload.md` writes what is printed now. Between lines that
are only `...` the first and the last line decide which part of the output is shown."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

from tests import warm

ROOT = Path(__file__).parents[1]
COMMANDS = re.compile(r"^<!-- run in (\S+) -->\n\n```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SOURCE = re.compile(r"^<!-- from (\S+) -->\n\n```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUN = re.compile(r"\.tensortrail/[\w-]{8,}")
LEFT_OUT = "..."
ALIKE = 0.6
NAMES = {
    "python": [],
    "tensortrail": ["-m", "tensortrail"],
    "torchrun": ["-m", "torch.distributed.run"],
}


def current(page: str) -> str:
    """The page with what its commands print now, and the lines of its programs as they are."""
    with tempfile.TemporaryDirectory() as parent:
        page = COMMANDS.sub(lambda found: _ran(found, Path(parent).resolve()), page)
    return SOURCE.sub(_quoted, page)


def _ran(found: re.Match[str], parent: Path) -> str:
    """Blocks of one page with the same programs share a folder."""
    folder = parent / Path(found[1]).name
    if not folder.exists():
        shutil.copytree(ROOT / found[1], folder)
    said = "\n".join(line for step in _steps(found[2]) for line in _step(step, folder))
    return f"<!-- run in {found[1]} -->\n\n```\n{said}\n```"


def _steps(block: str) -> Iterator[list[str]]:
    """A command and the lines under it."""
    step: list[str] = []
    for line in block.splitlines():
        if line.startswith("$ ") and step:
            yield step
            step = []
        step.append(line)
    yield step


def _step(shown: Sequence[str], folder: Path) -> list[str]:
    printed = _printed(shown[0], folder)
    lines, position = [shown[0]], 0
    for left_out, group in groupby(shown[1:], LEFT_OUT.__eq__):
        if left_out:
            lines.append(LEFT_OUT)
            continue
        old = list(group)
        first = _like(old[0], printed, position)
        position = _like(old[-1], printed, first) + 1
        lines += printed[first:position]
    return lines


def _like(line: str, printed: Sequence[str], start: int) -> int:
    alike = [SequenceMatcher(None, line, each).ratio() for each in printed[start:]]
    best = max(range(len(alike)), key=alike.__getitem__, default=0)
    assert max(alike, default=0) >= ALIKE, f"{line}\nis not in\n" + "\n".join(printed)
    return start + best


def _printed(command: str, folder: Path) -> list[str]:
    """Both streams, the errors last, without what is another one in each run."""
    name, *arguments = shlex.split(command.removeprefix("$ ").partition("  #")[0])
    wide = {**os.environ, "COLUMNS": "100", "PYTHONWARNINGS": "ignore", "OMP_NUM_THREADS": "1"}
    done = warm.run([*NAMES[name], *arguments], folder, env=wide)
    text = (done.stdout + done.stderr).replace(f"{folder}/", "")
    return [
        line.rstrip() for line in RUN.sub(".tensortrail/20261122-101500-4711", text).splitlines()
    ]


def _quoted(found: re.Match[str]) -> str:
    """Each line of the block by the text of the one that it was, at its number now."""
    lines = (ROOT / found[1]).read_text(encoding="utf-8").splitlines()
    said, number = [], 0
    for old in found[2].splitlines():
        if old:
            number = _like(re.sub(r"^\d+ +", "", old), lines, number) + 1
        said.append(f"{number:<3} {lines[number - 1]}" if old else "")
    text = "\n".join(said)
    return f"<!-- from {found[1]} -->\n\n```python\n{text}\n```"


def pages() -> list[Path]:
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in docs if COMMANDS.search(page.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        file = Path(name)
        file.write_text(current(file.read_text(encoding="utf-8")), encoding="utf-8")
