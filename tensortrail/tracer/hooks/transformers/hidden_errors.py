"""A save may tell of another exception than the one that stopped it."""

from __future__ import annotations

import os
import traceback
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.transformers.one_save import SAVE, Save


def note_hidden(recorder: Recorder, save: Save, error: Exception, function: Any) -> None:
    """`error` left `function`, the save, over another exception that it had caught."""
    cause = error.__context__
    if cause is None or error.__cause__ is not None or str(cause) in str(error):
        return
    raised, came = error.__traceback__, cause.__traceback__
    if raised is None or came is None or came.tb_frame.f_code is not function.__code__:
        return
    while raised.tb_next is not None:
        raised = raised.tb_next
    if raised.tb_frame.f_code is not function.__code__:
        return
    steps = traceback.extract_tb(came)
    names = [step.name for step in steps]
    converting = "revert_weight_conversion"
    facts = {
        "said": f"raised {type(error).__name__} over {type(cause).__name__}: {cause}",
        "raised": {"type": type(error).__name__, "message": str(error)},
        "hidden": {"type": type(cause).__name__, "message": str(cause)},
        "within": converting if converting in names else names[-1],
        "at": f"{os.path.basename(steps[-1].filename)}:{steps[-1].lineno}",
        "total": save.total,
        "files": len(save.files),
        "positions": save.positions,
    }
    recorder.note(Did.HOOK, op=SAVE, facts=facts)
