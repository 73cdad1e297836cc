"""Programs that are started from a process which has torch already: real processes, and quick."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("warm_server.py")
OTHERS = ("cacheprovider", "hypothesispytest", "asyncio", "pytest-lsp", "anyio")
PYTEST = ("-m", "pytest", *(word for name in OTHERS for word in ("-p", f"no:{name}")))
"""Without what the plugins of other projects take half a second to import."""


Program = tuple[Sequence[str], Mapping[str, str] | None]
"""A script or `-m module` with its arguments, and its environment if that is another one."""
Done = subprocess.CompletedProcess[str]


def run(
    command: Sequence[str],
    cwd: Path,
    given: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> Done:
    """As `subprocess.run([sys.executable, *command])`; `command` is a script or `-m module`."""
    return together([(command, env)], cwd, given, timeout)[0]


def together(
    programs: Sequence[Program], cwd: Path, given: str = "", timeout: float = 300
) -> list[Done]:
    """The same of programs that run beside each other, as ranks do."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            _job(program, cwd, given, Path(folder, str(number)))
            for number, program in enumerate(programs)
        ]
        statuses = _answer(_server(), jobs, timeout)
        return [
            _done(command, status, job)
            for (command, _), status, job in zip(programs, statuses, jobs, strict=True)
        ]


def _job(program: Program, cwd: Path, given: str, streams: Path) -> dict[str, Any]:
    command, env = program
    module = command[1] if command[0] == "-m" else ""
    streams.mkdir()
    job = {name: str(streams / name) for name in ("stdin", "stdout", "stderr")}
    Path(job["stdin"]).write_text(given)
    argv = list(command[1:] if module else command)
    return {"argv": argv, "module": module, "cwd": str(cwd), "env": dict(env or os.environ), **job}


def _done(command: Sequence[str], status: int, job: Mapping[str, Any]) -> Done:
    out, err = (Path(job[name]).read_text() for name in ("stdout", "stderr"))
    code = os.waitstatus_to_exitcode(status)
    return subprocess.CompletedProcess([sys.executable, *command], code, out, err)


def _answer(
    server: subprocess.Popen[str], jobs: Sequence[Mapping[str, Any]], timeout: float
) -> list[int]:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(jobs) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], timeout)[0]:
        os.killpg(server.pid, signal.SIGKILL)
        _server.cache_clear()
        raise subprocess.TimeoutExpired(str([job["argv"] for job in jobs]), timeout)
    return [int(status) for status in server.stdout.readline().split()]


@cache
def _server() -> subprocess.Popen[str]:
    """One for each process of the tests; it ends with the process."""
    return subprocess.Popen(
        [sys.executable, str(SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    )
