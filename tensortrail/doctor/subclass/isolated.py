"""Some operations on a tensor without storage kill the process: they run in a child of it."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import TypeVar

import torch

PATIENCE = 120.0
"""Seconds for one job."""
R = TypeVar("R")


def can_isolate() -> bool:
    """A GPU that is in use already is of no use in a child."""
    return hasattr(os, "fork") and not torch.cuda.is_initialized()


def each_survived(
    jobs: Sequence[Callable[[], R]], lost: Callable[[int, str], R], isolate: bool
) -> list[R]:
    """What the jobs give, in order; `lost` speaks for one that took its process down."""
    if not isolate:
        return [job() for job in jobs]
    results: list[R] = []
    while len(results) < len(jobs):
        done, fate = _in_a_child(jobs[len(results) :])
        results += done
        if len(results) < len(jobs):
            results.append(lost(len(results), fate))
    return results


def _in_a_child(jobs: Sequence[Callable[[], R]]) -> tuple[list[R], str]:
    fork = get_context("fork")
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=_work, args=(jobs, theirs))
    child.start()
    theirs.close()
    results: list[R] = []
    fate = ""
    try:
        while len(results) < len(jobs):
            if not ours.poll(PATIENCE):
                child.kill()
                fate = f"does not come back within {PATIENCE:.0f} s"
                break
            results.append(ours.recv())
    except EOFError:
        pass
    finally:
        ours.close()
        child.join()
    return results, fate or _fate(child.exitcode or 0)


def _work(jobs: Sequence[Callable[[], R]], answers: Connection) -> None:
    try:
        faulthandler.disable()
        gc.freeze()  # what the parent left behind may wait for threads that are not there
        os.dup2(2, 1)  # what the class prints is no part of what we print
        sys.stdout = sys.stderr
        torch.set_num_threads(1)  # threads of the parent are not there any more
        for job in jobs:
            answers.send(job())
    finally:
        os._exit(0)


def _fate(code: int) -> str:
    if code < 0:
        return f"kills the process ({signal.Signals(-code).name})"
    return "ends the process"
