"""The index of a checkpoint is compared with the files it names when the recording ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.shared.checkpoint_tensors import path_of
from tensortrail.tracer.hooks.shared.looking import looking_after
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "safetensors.torch"
INDEX = "checkpoint.index"
MOST_TOLD = 5
LONGEST_HEADER = 100_000_000


def install(recorder: Recorder, patches: Patches) -> None:
    import safetensors.torch as library

    written: dict[str, int] = {}
    patches.wrap(library, "save_file", _writing(recorder, written), everywhere=True)
    recorder.at_close.append(lambda: recorder.guarded(_compare, written))
    recorder.at_fork.append(written.clear)


def _writing(recorder: Recorder, written: dict[str, int]) -> Around:
    def look(
        recorder: Recorder, _: Any, tensors: Any, filename: Any, *more: Any, **ks: Any
    ) -> None:
        if path := path_of(filename):
            written[path] = recorder.site_here()

    return looking_after(recorder, look)


def _compare(recorder: Recorder, written: dict[str, int]) -> None:
    for folder in dict.fromkeys(map(os.path.dirname, written)):
        for index in sorted(Path(folder).glob("*.safetensors.index.json")):
            try:
                file_of = json.loads(index.read_bytes())["weight_map"]
                held = {file: keys(Path(folder) / file) for file in set(file_of.values())}
            except (OSError, ValueError, KeyError, TypeError):
                continue  # files that went away since, or are somebody else's
            sites = [written[path] for file in held if (path := f"{folder}/{file}") in written]
            wrong = dict(_wrong(file_of, held))
            if sites and wrong:
                told = dict(list(wrong.items())[:MOST_TOLD])
                said = f"{index.name} and the files do not agree on {len(wrong)} weights"
                facts = {"said": said, "index": str(index), "count": len(wrong), "wrong": told}
                recorder.note_at(sites[-1], Did.HOOK, op=INDEX, facts=facts)


def _wrong(file_of: dict[str, str], held: dict[str, set[str]]) -> Iterator[tuple[str, list[str]]]:
    """Weights with the file that the index names for them, "" for none, and those that have it."""
    everything = set(file_of).union(*held.values())
    for key in sorted(everything):
        having = sorted(file for file, keys in held.items() if key in keys)
        if having != [file_of.get(key)]:
            yield key, [file_of.get(key, ""), *having]


def keys(path: Path) -> set[str]:
    """The names of the tensors in a file, without the tensors."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > LONGEST_HEADER:
            raise ValueError("no header of safetensors")
        return set(json.loads(file.read(length))) - {"__metadata__"}
