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
TRACE = ["-m", "tensortrail", "trace", "--directory", "run"]
LAUNCHER = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]


def launched(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    """By torchrun, as people do. Once more if the ranks did not reach each other, which a busy
    machine does to gloo now and then."""
    (folder / "prog.py").write_text(source)
    command = [*LAUNCHER, *TRACE, *options, "prog.py"]
    done = warm.run(command, folder, env=environment(), timeout=180)
    if done.returncode and "connectFullMesh" in done.stderr:
        shutil.rmtree(folder / "run", ignore_errors=True)
        return warm.run(command, folder, env=environment(), timeout=180)
    return done


def together(folder: Path, source: str, *options: str) -> list[subprocess.CompletedProcess[str]]:
    """Without a launcher, which would end one when the other ends. They have torch already."""
    (folder / "prog.py").write_text(source)
    shared = shared_environment()
    programs = [([*TRACE, *options, "prog.py"], shared | of_rank(rank)) for rank in range(2)]
    return warm.together(programs, folder, timeout=180)


def started(folder: Path, source: str) -> list[subprocess.Popen[str]]:
    """The same; they may go on for ever."""
    (folder / "prog.py").write_text(source)
    shared = shared_environment()
    return [
        subprocess.Popen(
            [sys.executable, *TRACE, "prog.py"], cwd=folder, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=shared | of_rank(rank), text=True,
        )
        for rank in range(2)
    ]  # fmt: skip


def shared_environment() -> dict[str, str]:
    """What a launcher tells both ranks."""
    return environment() | {
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": "both",
    }  # fmt: skip


def of_rank(rank: int) -> dict[str, str]:
    return {"RANK": str(rank), "LOCAL_RANK": str(rank)}


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
