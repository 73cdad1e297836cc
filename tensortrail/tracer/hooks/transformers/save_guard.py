"""With a guard, a save is stopped before it touches the first file, if it would destroy data."""

from __future__ import annotations

import os
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import path_of
from tensortrail.tracer.hooks.transformers import one_save
from tensortrail.tracer.hooks.transformers.one_save import SAVE, Save, Saves, note_cut, note_lost
from tensortrail.tracer.patching.patches import Around


def writing_files(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if (save := saves.last) is not None:
            _before_files_change(recorder, save)
        return original(*args, **kwargs)

    return around


def removing_files(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, path: Any, *args: Any, **kwargs: Any) -> Any:
        if (save := saves.last) is not None:
            place = path_of(path)
            if os.path.dirname(place) == save.folder:
                _before_files_change(recorder, save)
            if save.needs and (name := one_save.needed(save, place)):
                _ask_about(recorder, save, (place, name), "removed")
        return original(path, *args, **kwargs)

    return around


def _before_files_change(recorder: Recorder, save: Save) -> None:
    """What the save will come to is known: files are not read and converted in another way."""
    if recorder.may_stop is None or not save.first("guarded"):
        return
    if "converted empty" in save.told:
        recorder.may_stop.ask("SHD401")
    if save.cut:
        note_cut(recorder, save)
        recorder.may_stop.ask("SHD402")
    if save.one_file and save.converts_parts and len(save.files) > 1:
        facts = {"said": "is about to fill its index with dicts", "index_of_dicts": True}
        facts |= {"total": save.total, "files": len(save.files), "positions": save.positions}
        recorder.note(Did.HOOK, op=SAVE, facts=facts)
        recorder.may_stop.ask("SHD403")
    if lost := one_save.overwritten(save):
        _ask_about(recorder, save, lost, "overwritten")


def _ask_about(recorder: Recorder, save: Save, what: tuple[str, str], fate: str) -> None:
    if recorder.may_stop is not None:
        said = f"is about to have {what[0]} {fate}, and has {what[1]} still to read from it"
        note_lost(recorder, save, what, {"said": said, "fate": fate, "ahead": True})
        recorder.may_stop.ask("SHD407")
