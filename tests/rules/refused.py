"""Programs that end with an exception, what a rule says of their runs, and them with its fix."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import tensortrail
from tensortrail.findings import Finding

from .recorded import none_are_there, with_edits


@dataclass(frozen=True)
class Ended:
    program: Path
    found: tuple[Finding, ...]
    error: BaseException | None

    @property
    def only(self) -> Finding:
        (finding,) = self.found
        return finding

    @property
    def fixed(self) -> str:
        """The program with the edits of the first fix."""
        edits = self.only.fixes[0].edits
        assert edits, self.only.fixes[0].description
        return with_edits(self.program, edits)


def ended(folder: Path, source: str, code: str, rehearse: str = "") -> Ended:
    """The run of a program in that folder, as one that nothing catches the exception of."""
    folder.mkdir(exist_ok=True)
    program = folder / "program.py"
    program.write_text(dedent(source), encoding="utf-8")
    compiled = compile(program.read_bytes(), str(program), "exec")
    here, error = Path.cwd(), None
    run = tensortrail.trace(folder / "run", rehearse=none_are_there(rehearse))
    os.chdir(folder)
    try:
        with run:
            exec(compiled, {"__name__": "program"})
    except Exception as raised:
        error = raised
    finally:
        os.chdir(here)
    return Ended(program, tuple(each for each in run.findings() if each.code == code), error)


def mended(folder: Path, before: Ended, code: str, rehearse: str = "") -> None:
    """With the fix the program runs to its end, and nothing of that kind is found."""
    after = ended(folder / "mended", before.fixed, code, rehearse)
    assert after.error is None
    assert not after.found
