"""The compiler's work is a phase of the trail, in which nothing of ours stands in its way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch._dynamo.callback"


def install(recorder: Recorder, patches: Patches) -> None:
    from torch._dynamo.callback import CompilationCallbackHandler

    @contextmanager
    def compiling(original: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        with (
            recorder.phases.within("compile"),
            patches.paused(),
            original(*args, **kwargs) as given,
        ):
            yield given

    patches.wrap(CompilationCallbackHandler, "install_callbacks", compiling, always=True)
