"""The folders that the program leaves: relative names meant something else in them."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.noticing.escaped.left_folders import LEFT
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "os"


def install(recorder: Recorder, patches: Patches) -> None:
    def leaving(original: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.guarded(_leaves)
        return original(*args, **kwargs)

    patches.wrap(os, "chdir", leaving)
    recorder.at_close.append(LEFT.clear)


def _leaves(recorder: Recorder) -> None:
    with suppress(OSError):  # it was removed
        _note(recorder, os.getcwd())


def _note(recorder: Recorder, here: str) -> None:
    if all(folder != here for folder, _ in LEFT):
        LEFT.append((here, recorder.user_here()))
