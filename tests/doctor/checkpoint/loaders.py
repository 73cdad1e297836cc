"""The real loaders, in a process of their own: what is damaged may crash them or take all memory.

`python -m tests.doctor.checkpoint.loaders KIND` answers each folder on its input with a line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

MOST_MEMORY, SECONDS = 8 << 30, 20
"""The seconds are processor time, which a load takes on a busy machine as on an idle one."""


class Loader:
    """Started again after a crash, which counts as a load that failed."""

    def __init__(self, kind: str) -> None:
        self._command = [sys.executable, "-m", "tests.doctor.checkpoint.loaders", kind]
        self._process: subprocess.Popen[str] | None = None

    def loads(self, folder: Path) -> bool:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{folder}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().strip()
        if not answer:
            self.close()
        return answer == "loads"

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def by_dcp(folder: Path) -> bool:
    """On one rank, all tensors that the checkpoint lists, as `dcp_to_torch_save` reads them."""
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
    from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

    found: dict[str, object] = {}
    reader, planner = FileSystemReader(folder), _EmptyStateDictLoadPlanner()
    _load_state_dict(found, storage_reader=reader, planner=planner, no_dist=True)
    return bool(found)


def by_from_pretrained(folder: Path) -> bool:
    """Weights that are missing are made up by the loader: that is no load."""
    from tests.doctor.checkpoint.damaged_model import loading_info

    told = loading_info(folder)
    return not (told["missing_keys"] or told["mismatched_keys"])


KINDS: Mapping[str, Callable[[Path], bool]] = {
    "dcp": by_dcp, "from_pretrained": by_from_pretrained,
}  # fmt: skip


def main() -> None:
    import resource
    import signal

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    load = KINDS[sys.argv[1]]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(10 * SECONDS)  # for a load that waits
        try:
            good = load(Path(line.strip()))
        except BaseException:  # that of a distributed checkpoint is no Exception
            good = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        print("loads" if good else "fails", file=answers, flush=True)


if __name__ == "__main__":
    main()
