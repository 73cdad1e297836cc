"""Processes of xdist record one run: each in a folder of its own, in that of the run."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from tensortrail.tracer.trail.run_files import DEFAULT_DIRECTORY

STARTED = "exec(eval(sys.stdin.readline()))"
"""How execnet starts a process of xdist. Programs that a test starts inherit its environment."""


def worker() -> str:
    """`gw0`, `gw1`, ...; empty in a session without xdist, and where it was started."""
    own = any(STARTED in each for each in sys.orig_argv)
    return os.environ.get("PYTEST_XDIST_WORKER", "") if own else ""


def run_name(uid: str = "") -> str:
    """The same in all processes; empty without xdist."""
    uid = uid or (os.environ.get("PYTEST_XDIST_TESTRUNUID", "") if worker() else "")
    return f"xdist-{uid[:8]}" if uid else ""


def directory(asked: str | None) -> str | None:
    """Where this process puts its trail. None leaves it to the recording."""
    if not worker():
        return asked
    return os.path.join(asked or os.path.join(DEFAULT_DIRECTORY, run_name()), worker())


def directory_of_all(asked: str | None, node: Any) -> str:
    """Where those of a process that is done, and of the others, lie together."""
    uid = str(node.workerinput.get("testrunuid", ""))
    return asked or os.path.join(DEFAULT_DIRECTORY, run_name(uid))


def starts_others(config: pytest.Config) -> bool:
    """Whether the tests run in other processes."""
    return config.pluginmanager.hasplugin("dsession")
