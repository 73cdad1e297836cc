"""Real programs, each run and recorded in a process of its own."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.reading.timeline import RunTimeline, open_run
from tests import warm

BEFORE = """\
import os, sys, threading, time
import torch
from tensortrail.tracer.recording.begin import begin
"""
AFTER = """
if __name__ == "__main__":
    running = begin(sys.argv[1])
    main()
    running.stop()
"""


@dataclass
class Recorded:
    timeline: RunTimeline
    output: str
    code: int
    file: str

    def events(self, *kinds: Did, process: str = "", thread: str = "") -> list[Event]:
        """Those of processes and threads whose labels hold the texts."""
        return [
            event
            for event in self.timeline.events(*kinds)
            if process in event.process and thread in event.thread
        ]

    def made(self, process: str = "", thread: str = "") -> set[tuple[int, ...]]:
        """The shapes of the tensors created there."""
        created = self.events(Did.CREATE, process=process, thread=thread)
        return {event.storage.shape for event in created if event.storage is not None}

    @property
    def processes(self) -> list[str]:
        return [process.label for process in self.timeline.processes]


def recorded(folder: Path, source: str, code: int = 0, timeout: float = 100) -> Recorded:
    """`source` defines `main()`; the program must leave with `code`, and the recording be well."""
    program = folder / "program.py"
    program.write_text(BEFORE + dedent(source) + AFTER)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = warm.run([str(program), str(folder / "run")], folder, env=env, timeout=timeout)
    assert done.returncode == code, done.stderr
    timeline = open_run(folder / "run")
    assert not timeline.trouble
    for process in timeline.processes:
        assert not process.part.header.get("fault")
    return Recorded(timeline, done.stdout, done.returncode, str(program))
