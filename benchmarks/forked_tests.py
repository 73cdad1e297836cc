"""Tests of another project in a forked process that has torch imported already."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

TITLE = "tensortrail: what was where"
PRELOADED = (
    "numpy", "PIL.Image", "pytest", "regex", "requests", "safetensors.torch", "torch._dynamo",
    "torch._inductor.config", "torch.distributed.fsdp", "torch.onnx", "torch.utils.data", "yaml",
    "tensortrail.tracer.entrances.rehearsed_tests",
)  # fmt: skip
RANK = {"passed": 0, "skipped": 1, "failed": 2}


class Outcome(NamedTuple):
    word: str
    """passed, skipped or failed."""
    message: str
    explanation: str
    """What the rehearsal said of a failure."""


class Outcomes(NamedTuple):
    tests: dict[str, Outcome]
    trouble: str = ""
    """Why there is no outcome of some or all."""


class _Collector:
    """A plugin of pytest."""

    def __init__(self) -> None:
        self.found: dict[str, Outcome] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._keep(report)

    def pytest_collectreport(self, report: Any) -> None:
        if report.outcome != "passed":
            self._keep(report)

    def _keep(self, report: Any) -> None:
        known = self.found.get(report.nodeid)
        if known is None or RANK[report.outcome] > RANK[known.word]:
            told = "\n".join(text for title, text in report.sections if title == TITLE)
            self.found[report.nodeid] = Outcome(report.outcome, _message(report), told)


def _message(report: Any) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])[:300]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr or "").strip()[:300]


def preload() -> None:
    for name in PRELOADED:
        importlib.import_module(name)


def run(
    paths: Sequence[Path],
    package: str,
    folder: Path,
    arguments: Sequence[str],
    seconds: float,
    without: Sequence[str] = (),
) -> Outcomes:
    """Of pytest in `folder`, with packages in `paths`, as if those in `without` were missing.

    `package` has to be the one that lies in the first of the paths."""
    with tempfile.TemporaryDirectory() as written:
        result = Path(written) / "found.json"
        child = os.fork()
        if child == 0:
            sys.modules.update(dict.fromkeys(without))  # type: ignore[arg-type]
            _run_here(paths, package, folder, arguments, result)
        ended = _wait(child, seconds)
        if not result.is_file():
            return Outcomes({}, "took too long" if not ended else "the process died")
        found, imported = json.loads(result.read_text(encoding="utf-8"))
        ran = any(word != "skipped" for word, *_ in found.values())
        if not Path(imported).is_relative_to(paths[0]) and (imported or ran):
            said = next((message for word, message, _ in found.values() if word == "failed"), "")
            return Outcomes({}, f"cannot be imported: {said[-160:]}")
        return Outcomes({name: Outcome(*each) for name, each in found.items()})


def _run_here(
    paths: Sequence[Path], package: str, folder: Path, arguments: Sequence[str], result: Path
) -> None:
    try:
        os.setpgid(0, 0)
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        import pytest

        os.chdir(folder)
        sys.path[:0] = map(str, paths)
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, paths))
        collector = _Collector()
        options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={folder}"]
        options += ["-o", "markers=fix", "--tb=short"]
        pytest.main([*options, *arguments], plugins=[collector])
        partial = result.with_suffix(".part")
        imported = str((getattr(sys.modules.get(package), "__path__", None) or [""])[0])
        partial.write_text(json.dumps([collector.found, imported]), encoding="utf-8")
        partial.rename(result)
    finally:
        os._exit(0)


def _wait(child: int, seconds: float) -> bool:
    """Whether it ended by itself."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.2)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
