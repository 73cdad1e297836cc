"""transformers: what `save_pretrained` cuts, reads back, converts and hides."""

from __future__ import annotations

import inspect
import os
import threading
from dataclasses import dataclass, field
from typing import Any

from tensortrail.rules.shards._plan import smallest_limit
from tensortrail.rules.timeline import Did
from tensortrail.tracer.hooks._conversions import groups
from tensortrail.tracer.hooks._offloaded import source
from tensortrail.tracer.hooks.saving import path_of
from tensortrail.tracer.patches import Around, Patches
from tensortrail.tracer.recorder import Recorder

LIBRARY = "transformers.modeling_utils"
SAVE = "transformers.save_pretrained"
MOST_GROUPS = 20


@dataclass
class Save:
    """One call of `save_pretrained`."""

    model: Any
    folder: str
    limit: int | str
    positions: dict[str, int]
    """Where the call takes its arguments without their names."""
    reverts: bool
    """Weights are brought back to their original format file by file."""
    sources: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Files the weights are offloaded to, as they were before anything was written."""
    told: set[str] = field(default_factory=set)
    failure: BaseException | None = None


class Saves(threading.local):
    def __init__(self) -> None:
        self.open: list[Save] = []

    @property
    def last(self) -> Save | None:
        return self.open[-1] if self.open else None


def install(recorder: Recorder, patches: Patches) -> None:
    import transformers.modeling_utils as library

    saves = Saves()
    patches.wrap(library.PreTrainedModel, "save_pretrained", _saving(recorder, saves))
    patches.wrap(library, "split_torch_state_dict_into_shards", _splitting(recorder, saves))
    patches.wrap(library, "load_offloaded_parameter", _reading_back(recorder, saves))
    patches.wrap(library, "revert_weight_conversion", _reverting(saves))


def _saving(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, model: Any, *args: Any, **kwargs: Any) -> Any:
        save = recorder.guarded(_begun, original, model, args, kwargs) if recorder.active else None
        if save is None:
            return original(model, *args, **kwargs)
        facts = {"path": save.folder, "max_shard_size": save.limit, "reverts": save.reverts}
        with recorder.phase("checkpoint", facts):
            saves.open.append(save)
            try:
                return original(model, *args, **kwargs)
            except Exception as error:
                recorder.guarded(_failed, save, error)
                raise
            finally:
                saves.open.pop()
                save.failure = None

    return around


def _begun(recorder: Recorder, original: Any, model: Any, args: Any, kwargs: Any) -> Save:
    signature = inspect.signature(original)
    given = signature.bind(model, *args, **kwargs)
    given.apply_defaults()
    of = given.arguments
    recorder.name_module(model)
    places = set(map(str, getattr(model, "hf_device_map", {}).values()))
    return Save(
        model,
        path_of(of.get("save_directory")),
        of.get("max_shard_size", ""),
        {name: place for place, name in enumerate(list(signature.parameters)[1:])},
        bool(of.get("save_original_format")) and bool(places & {"cpu", "disk"}),
    )


def _splitting(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(state_dict, *args, **kwargs)
        if (save := saves.last) is not None and recorder.active:
            recorder.guarded(_sources, save, state_dict)
            recorder.guarded(_cut, save, state_dict, result)
        return result

    return around


def _sources(recorder: Recorder, save: Save, state_dict: Any) -> None:
    """What the weights are read from in the end, though files are removed and written before."""
    elsewhere = (name for name, tensor in state_dict.items() if getattr(tensor, "is_meta", False))
    for path in {source(save.model, name) for name in elsewhere}:
        if (state := _state(path)) is not None:
            save.sources[path] = state


def _state(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _cut(recorder: Recorder, save: Save, state_dict: Any, split: Any) -> None:
    file_of = split.tensor_to_filename
    facts: dict[str, Any] = {
        "said": f"cut {len(state_dict)} weights into {len(split.filename_to_tensors)} files",
        "path": save.folder,
    }
    if save.reverts:
        together = groups(save.model, state_dict)
        cut = {
            target: {name: file_of[name] for name in names}
            for target, names in together.items()
            if len({file_of[name] for name in names}) > 1
        }
        if cut:
            sizes = {
                name: tensor.numel() * tensor.element_size() for name, tensor in state_dict.items()
            }
            facts["max_shard_size"] = save.limit
            facts["positions"] = save.positions
            facts["works"] = smallest_limit(sizes, together.values())
            facts["count"], facts["groups"] = len(cut), dict(list(cut.items())[:MOST_GROUPS])
    recorder.note(Did.HOOK, op="transformers.split", facts=facts)


def _reading_back(recorder: Recorder, saves: Saves) -> Around:
    def around(original: Any, model: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if (save := saves.last) is not None and recorder.active:
            recorder.guarded(_reads_back, save, model, name)
        return original(model, name, *args, **kwargs)

    return around


def _reads_back(recorder: Recorder, save: Save, model: Any, name: str) -> None:
    path = source(model, name)
    before = save.sources.get(path)
    if before is None or path in save.told or (now := _state(path)) == before:
        return
    save.told.add(path)
    fate = "removed" if now is None else "overwritten"
    facts: dict[str, Any] = {"said": f"reads {name} from {path}, which was {fate} before"}
    facts |= {"path": path, "key": name, "fate": fate}
    facts |= {"folder": save.folder, "positions": save.positions}
    recorder.note(Did.HOOK, op="transformers.load_offloaded_parameter", facts=facts)


def _reverting(saves: Saves) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(*args, **kwargs)
        except Exception as error:
            if (save := saves.last) is not None:
                save.failure = error
            raise

    return around


def _failed(recorder: Recorder, save: Save, error: Exception) -> None:
    """The save tells of another exception than the one that stopped it."""
    cause = save.failure
    if cause is None or error.__context__ is not cause or error.__cause__ is not None:
        return
    facts = {
        "said": f"raised {type(error).__name__} over {type(cause).__name__}: {cause}",
        "raised": {"type": type(error).__name__, "message": str(error)},
        "hidden": {"type": type(cause).__name__, "message": str(cause)},
        "within": "revert_weight_conversion",
        "positions": save.positions,
    }
    recorder.note(Did.HOOK, op=SAVE, facts=facts)
