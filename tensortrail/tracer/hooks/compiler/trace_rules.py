"""The compiler remembers functions of torch for ever: it must not remember our wrappers."""

from __future__ import annotations

from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch._dynamo.trace_rules"


def install(recorder: Recorder, patches: Patches) -> None:
    from torch._dynamo import trace_rules

    def loading(original: Any, name: str) -> Any:
        return patches.original(original(name))

    patches.wrap(trace_rules, "load_object", loading, always=True)
    with patches.paused():
        trace_rules.get_tensor_method()
