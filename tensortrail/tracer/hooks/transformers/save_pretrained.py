"""transformers' `save_pretrained` cuts, reads back, converts and hides; each is noted here."""

from __future__ import annotations

import inspect
import os
from typing import Any

from tensortrail.rules.shared.conversion_groups import groups
from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.transformers import one_save
from tensortrail.tracer.hooks.transformers.hidden_errors import note_hidden
from tensortrail.tracer.hooks.transformers.one_save import (
    READ,
    SAVE,
    SPLIT,
    Save,
    Saves,
    note_cut,
    note_lost,
)
from tensortrail.tracer.hooks.transformers.save_guard import removing_files, writing_files
from tensortrail.tracer.noticing.written_checkpoints import writing
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "transformers.modeling_utils"
CONVERT = "transformers.revert_weight_conversion"


def install(recorder: Recorder, patches: Patches) -> None:
    import transformers.modeling_utils as library

    saves = Saves()
    patches.wrap(library.PreTrainedModel, "save_pretrained", _saving(recorder, saves))
    patches.wrap(library, "split_torch_state_dict_into_shards", _splitting(recorder, saves))
    patches.wrap(library, "load_offloaded_parameter", _reading_back(recorder, saves))
    patches.wrap(library, "revert_weight_conversion", _converting(recorder, saves))
    if recorder.may_stop is not None:
        patches.wrap(library, "safe_save_file", writing_files(recorder, saves))
        patches.wrap(os, "remove", removing_files(recorder, saves))


def _saving(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        save = recorder.guarded(_begun, original, model, args, kwargs)
        if save is None:
            return original(model, *args, **kwargs)
        facts = {"path": save.folder, "max_shard_size": save.limit}
        with recorder.phases.within("checkpoint", facts), writing(recorder, save.folder, SAVE):
            saves.open.append(save)
            try:
                return original(model, *args, **kwargs)
            except Exception as error:
                recorder.guarded(note_hidden, save, error, inspect.unwrap(original))
                raise
            finally:
                saves.open.pop()

    return around


def _begun(recorder: Recorder, original: Any, model: Any, args: Any, kwargs: Any) -> Save:
    recorder.name_module(model)
    return one_save.begun(original, model, args, kwargs)


# --- the cut ---------------------------------------------------------------------------------
def _splitting(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(state_dict, *args, **kwargs)
        if (save := saves.last) is not None:

            def again(limit: int) -> Any:
                return original(state_dict, *args, **{**kwargs, "max_shard_size": limit})

            recorder.guarded(_split, save, state_dict, result, again)
        return result

    return around


def _split(recorder: Recorder, save: Save, state_dict: Any, result: Any, again: Any) -> None:
    save.files, save.total = result.filename_to_tensors, one_save.total(state_dict)
    said = f"cut {len(state_dict)} weights into {len(save.files)} files"
    facts: dict[str, Any] = {"said": said, "path": save.folder}
    if next(one_save.without_data(state_dict), None) is not None:
        save.collects = one_save.can_be_collected(save.model)
        facts |= {"total": save.total, "collects": save.collects}
        facts |= {"positions": save.positions, **one_save.left_by(save.model)}
    recorder.note(Did.HOOK, op=SPLIT, facts=facts)
    one_save.look_for_sources(save, state_dict)
    if save.converts_parts:
        save.groups = groups(save.model, state_dict)
        one_save.look_for_cuts(save, state_dict, result, again)


# --- converting ------------------------------------------------------------------------------
def _converting(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, model: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        save = saves.last
        if save is None:
            return original(model, state_dict, *args, **kwargs)
        if save.files:
            recorder.guarded(_converts_part, save, state_dict)
            return original(model, state_dict, *args, **kwargs)
        save.converts_parts = False
        empty = {name: state_dict[name] for name in one_save.without_data(state_dict)}
        result = original(model, state_dict, *args, **kwargs)
        if empty:
            recorder.guarded(_converted_empty, save, empty, result)
        return result

    return around


def _converts_part(recorder: Recorder, save: Save, state_dict: Any) -> None:
    """A file has a part of a group that is cut, and only that part is converted."""
    for target in save.cut.get("groups", ()):
        names = save.groups[target]
        if any(name in state_dict for name in names):
            note_cut(recorder, save)
            return


def _converted_empty(recorder: Recorder, save: Save, empty: Any, result: Any) -> None:
    changed = [name for name, tensor in empty.items() if result.get(name) is not tensor]
    made = [name for name in one_save.without_data(result) if name not in empty]
    same = (name for name in made if result[name] is empty[changed[0]])
    if not changed or not save.first("converted empty"):
        return
    facts: dict[str, Any] = {
        "said": f"converted {len(changed)} weights that have no data",
        "without_data": len(changed),
        "key": changed[0],
        "becomes": next(same, made[0] if made else changed[0]),
        "total": one_save.total(result),
        "collects": one_save.can_be_collected(save.model),
        "positions": save.positions,
    }
    recorder.note(Did.HOOK, op=CONVERT, facts=facts)


# --- reading back ----------------------------------------------------------------------------
def _reading_back(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, model: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        save = saves.last
        if save is not None:
            recorder.guarded(_reads_back, save, name)
        result = original(model, name, *args, **kwargs)
        if save is not None:
            save.needs.pop(name, None)
        return result

    return around


def _reads_back(recorder: Recorder, save: Save, name: str) -> None:
    path = save.needs.get(name, "")
    before = save.states.get(path)
    if before is not None and (now := one_save.state_of(path)) != before:
        fate = "removed" if now is None else "overwritten"
        if save.first(path):
            said = f"reads {name} from {path}, which was {fate} before"
            note_lost(recorder, save, (path, name), {"said": said, "fate": fate})
    elif save.first("reads back"):
        facts = {"said": f"reads {name} back", "key": name, "path": path}
        recorder.note(Did.HOOK, op=READ, facts=facts)
