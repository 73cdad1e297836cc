"""What an explanation mentions: libraries, places and names, and which of them are not there."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from tensortrail.tracer.explaining.fitting import ABOUT
from tensortrail.tracer.reading.timeline import RunTimeline, open_run
from tests.real.programs.cases import Ended

PLACE = re.compile(r"(?<![\w/.])([\w./\-]+\.py):(\d+)")
CODE = re.compile(r"`([^`\n]+)`")
WORD = re.compile(r"[A-Za-z_]\w*")
FORMS = {"accelerate": r"\baccelerate\b|align_module_device", "transformers": r"\btransformers\b",
         "diffusers": r"\bdiffusers\b"}  # fmt: skip
"""Narrower than the table's: a hook may be torch's, and a user's function called `offload`."""


def strangers(ended: Ended) -> list[str]:
    """What is mentioned and has nothing to do with the program that ran."""
    timeline = open_run(ended.folder / "run")
    told = "\n".join(line for line in _ours(ended.told))
    known = _known(ended.folder, timeline)
    return [*_libraries(told, timeline), *_places(told, ended.folder), *_names(told, known)]


def _ours(terminal: str) -> Iterator[str]:
    """The lines that are not the program's, nor a traceback's."""
    inside = False
    for line in terminal.splitlines():
        inside = line.startswith(("tensortrail: ", "---")) or (inside and line.startswith("  "))
        if inside:
            yield line


def _libraries(told: str, timeline: RunTimeline) -> Iterator[str]:
    loaded = {str(each) for part in timeline.parts for each in part.header.get("libraries", ())}
    for library, words in {**ABOUT, **FORMS}.items():
        name = library.partition(".")[0]
        if name not in loaded | {"torch"} and (found := re.search(words, told)):
            yield f"{found[0]} is {library}'s, which is not loaded"


def _places(told: str, folder: Path) -> Iterator[str]:
    import torch

    roots = [folder, Path(torch.__file__).parents[1]]
    for name, line in set(PLACE.findall(told)):
        there = [root / name for root in roots if (root / name).is_file()]
        if not there:
            yield f"{name} is no file"
        elif not any(int(line) <= len(each.read_text().splitlines()) for each in there):
            yield f"{name} has no line {line}"


def _known(folder: Path, timeline: RunTimeline) -> set[str]:
    """Words of the program, of its run, and of what torch has."""
    import torch

    texts = [each.read_text() for each in folder.glob("*.py")]
    for process in timeline.processes:
        part = process.part
        texts += map(str, part.texts.values() if isinstance(part.texts, dict) else part.texts)
        texts += (str(row[7]) for row in part.rows)
    found = {word for text in texts for word in WORD.findall(text)}
    for each in (torch, torch.Tensor, torch.nn, torch.nn.Module, torch.nn.functional, torch.cuda):
        found |= set(dir(each))
    calls = [torch.utils.data.DataLoader, torch.Tensor.backward, torch.nn.Module.load_state_dict,
             torch.nn.parallel.DistributedDataParallel]  # fmt: skip
    if "peft" in {
        str(each) for part in timeline.parts for each in part.header.get("libraries", {})
    }:
        calls.append(importlib.import_module("peft").PeftModel.from_pretrained)
    for each in calls:
        found |= set(inspect.signature(each).parameters)
    return found | {"True", "False"}


def _names(told: str, known: set[str]) -> Iterator[str]:
    for code in set(CODE.findall(told)):
        missing = [word for word in WORD.findall(code) if word not in known]
        if missing and not _is_of_library(code):
            yield f"`{code}`: there is no {', '.join(missing)}"


def _is_of_library(path: str) -> bool:
    """`library.module.name`, and the library has it."""
    module, _, name = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name)
    except (ImportError, ValueError):
        return False
