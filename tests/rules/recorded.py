"""Small real programs, recorded in this process, and what a rule says of their runs.

The lines that must be flagged carry the comment `# flagged`; all others must not be. With
`TENSORTRAIL_ON_GPUS=1` programs run on the GPUs of the machine, where it has as many as a program
is rehearsed on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from tensortrail.findings import Edit, Finding
from tensortrail.rules import all_rules
from tensortrail.tracer.noticing.written_checkpoints import Judge
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import RunTimeline, open_run
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.rehearsal.devices.spec import parse_spec

MARK = "# flagged"
SIMULATED = "cuda:1x80GiB"
"""Rehearsed also where there is a GPU: a rehearsal knows more, or compiled code raises sooner."""
WRAPPER = """\
import torch
from torch.utils import _pytree as pytree

class Packed(torch.Tensor):
    @staticmethod
    def __new__(cls, inner, **said):
        said = {"device": inner.device, "dtype": inner.dtype, **said}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, **said)
    def __init__(self, inner, **said):
        self.inner = inner
    def __tensor_flatten__(self):
        return ["inner"], None
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        answer = cls.answer(func, args, kwargs or {})
        if answer is not None:
            return answer
        plain = pytree.tree_map_only(cls, lambda t: t.inner, (args, kwargs or {}))
        return pytree.tree_map_only(torch.Tensor, cls, func(*plain[0], **plain[1]))
    @classmethod
    def answer(cls, func, args, kwargs): ...
"""
"""A wrapper subclass without a fault. Programs give it some by another `answer`."""


@dataclass(frozen=True)
class Seen:
    program: Path
    timeline: RunTimeline
    found: tuple[Finding, ...]
    error: BaseException | None

    @property
    def only(self) -> Finding:
        (finding,) = self.found
        return finding

    @property
    def steps(self) -> str:
        """The trail of the only finding, one step a line."""
        return "\n".join(f"{step.site.line}: {step.message}" for step in self.only.trail)

    @property
    def fixed(self) -> str:
        """The program with the first fix of the only finding that edits anything."""
        fix = next((each for each in self.only.fixes if each.edits), self.only.fixes[0])
        return with_edits(self.program, fix.edits)


def with_edits(program: Path, edits: Sequence[Edit]) -> str:
    data = program.read_bytes()
    for edit in sorted(edits, key=lambda edit: -edit.site.start):
        assert Path(edit.site.file) == program
        data = data[: edit.site.start] + edit.text.encode() + data[edit.site.end :]
    return data.decode()


def record(
    folder: Path, source: str, rehearse: str = "", verify: Judge | None = None
) -> tuple[Path, RunTimeline, BaseException | None]:
    """A program's run in that folder, its trail and what it raised."""
    program = folder / "program.py"
    program.write_text(dedent(source), encoding="utf-8")
    here = Path.cwd()
    code = compile(program.read_bytes(), str(program), "exec")
    error: BaseException | None = None
    simulated = none_are_there(rehearse)
    spec = parse_spec(simulated) if simulated else None
    running = begin(folder / "run", Options(rehearse=spec, verify=verify))
    os.chdir(folder)
    try:
        exec(code, {"__name__": "program", "folder": str(folder)})
    except Exception as raised:
        error = raised
    finally:
        os.chdir(here)
        running.stop()
    assert not running.recorder.writer.fault, running.recorder.writer.fault
    return program, open_run(folder / "run"), error


def none_are_there(rehearse: str) -> str:
    """What has to be rehearsed of it; never less where a size of the memory is asked for."""
    if not os.environ.get("TENSORTRAIL_ON_GPUS") or not rehearse or "x" in rehearse:
        return rehearse
    import torch

    wanted = parse_spec(rehearse).count
    return "" if wanted <= torch.cuda.device_count() else rehearse


def found(timeline: RunTimeline, *codes: str) -> tuple[Finding, ...]:
    """What the rules of these codes find in a run; without any, what all default ones do."""
    judged = findings(timeline, [all_rules()[code]() for code in codes] or None)
    assert not judged.problems
    return judged.findings


def watched(folder: Path, source: str, code: str, rehearse: str = "") -> Seen:
    """The program's run, and what the rule of that code finds in it: on the marked lines only."""
    program, timeline, error = record(folder, source, rehearse)
    if error is not None and MARK not in source:
        pytest.fail(f"the program raised {error!r}")
    seen = Seen(program, timeline, found(timeline, code), error)
    marked = {n for n, line in enumerate(dedent(source).splitlines(), 1) if MARK in line}
    told = [f"line {each.site.line}: {each.message}" for each in seen.found]
    assert {each.site.line for each in seen.found} == marked, told
    assert all(Path(each.site.file) == program for each in seen.found)
    return seen


def runs_without_findings(folder: Path, mended: str, code: str, rehearse: str = "") -> None:
    """The program with its fix, in a folder of its own, where the rule finds nothing any more."""
    (folder / "mended").mkdir()
    watched(folder / "mended", mended.replace(MARK, ""), code, rehearse)
