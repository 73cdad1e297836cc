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

SERVER = Path(__file__).with_name("warm_server.py")
OTHERS = ("cacheprovider", "hypothesispytest", "asyncio", "pytest-lsp", "anyio")
PYTEST = ("-m", "pytest", *(word for name in OTHERS for word in ("-p", f"no:{name}")))
"""Without what the plugins of other projects take half a second to import."""


def run(
    command: Sequence[str],
    cwd: Path,
    given: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run([sys.executable, *command])`; `command` is a script or `-m module`."""
    module = command[1] if command[0] == "-m" else ""
    with tempfile.TemporaryDirectory() as folder:
        streams = {name: str(Path(folder, name)) for name in ("stdin", "stdout", "stderr")}
        Path(streams["stdin"]).write_text(given)
        argv = list(command[1:] if module else command)
        job = {"argv": argv, "module": module, "cwd": str(cwd), "env": dict(env or os.environ)}
        code = os.waitstatus_to_exitcode(_answer(_server(), {**job, **streams}, timeout))
        out, err = (Path(streams[name]).read_text() for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess([sys.executable, *command], code, out, err)


def _answer(server: subprocess.Popen[str], job: Mapping[str, object], timeout: float) -> int:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], timeout)[0]:
        os.killpg(server.pid, signal.SIGKILL)
        _server.cache_clear()
        raise subprocess.TimeoutExpired(str(job["argv"]), timeout)
    return int(server.stdout.readline())


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
