"""peft gives the merged model back: the wrapper that it was called on has no adapter any more."""

from __future__ import annotations

import weakref
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "peft.peft_model"


def install(recorder: Recorder, patches: Patches) -> None:
    from peft.peft_model import PeftModel
    from peft.tuners.tuners_utils import BaseTuner

    merged: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def merging(original: Any, tuner: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(tuner, *args, **kwargs)
        recorder.guarded(lambda _: merged.__setitem__(tuner, recorder.user_here()))
        return result

    def saving(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.guarded(_saves, merged, model)
        return original(model, *args, **kwargs)

    patches.wrap(BaseTuner, "merge_and_unload", merging)
    patches.wrap(PeftModel, "save_pretrained", saving)


def _saves(recorder: Recorder, merged: Any, model: Any) -> None:
    at = merged.get(model.base_model)
    if at is not None:
        facts = {"merged away": list(at)}
        recorder.note(Did.HOOK, op="PeftModel.save_pretrained", facts=facts)
