"""`copy.deepcopy` copies the parameters of a module, and no mode sees that."""

from __future__ import annotations

from typing import Any

from torch.nn import Parameter

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "torch"
OP = "copy.deepcopy"


def install(recorder: Recorder, patches: Patches) -> None:
    def copying(original: Any, parameter: Any, memo: Any) -> Any:
        was_copied = id(parameter) in memo
        copy = original(parameter, memo)
        if not was_copied:
            recorder.guarded(_copied, parameter, copy)
        return copy

    patches.wrap(Parameter, "__deepcopy__", copying)


def _copied(recorder: Recorder, source: Any, copy: Any) -> None:
    entry, other = recorder.storages.entry(copy), recorder.storages.entry(source)
    if entry is not None and other is not None and entry is not other:
        recorder.note(Did.CREATE, entry, op=OP, facts={"copy of": other.number})
