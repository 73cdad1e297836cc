"""Programs of two ranks, each recorded into one run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tests import warm

HERE = Path(__file__).parents[2]
TRACE = [sys.executable, "-m", "tensortrail", "trace", "--directory", "run"]


def launched(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """By torchrun, as people do. Once more if the ranks did not reach each other, which a busy
    machine does to gloo now and then."""
    (folder / "prog.py").write_text(source)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command = [*launcher, "--standalone", *TRACE[1:], *options, "prog.py"]
    done = _ended(command, folder)
    if done.returncode and "connectFullMesh" in done.stderr:
        shutil.rmtree(folder / "run", ignore_errors=True)
        return _ended(command, folder)
    return done


def _ended(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=180
    )


def started(folder: Path, source: str) -> list[subprocess.Popen[str]]:
    """Without a launcher, which would end one when the other ends."""
    (folder / "prog.py").write_text(source)
    shared = environment() | {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": "both",
    }  # fmt: skip
    return [
        subprocess.Popen(
            [*TRACE, "prog.py"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}


def reported(folder: Path, *options: str) -> str:
    wide = environment() | {"COLUMNS": "160"}
    done = warm.run(["-m", "tensortrail", "report", "run", *options], folder, env=wide)
    done.check_returncode()
    return done.stdout
