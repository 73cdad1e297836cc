from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Edit, Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Storage, Timeline
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.operands import named
from tensortrail.rules.shared.sizes import MB, size
from tensortrail.rules.storage._parts import may_be_all_there_is, parts_saved
from tensortrail.rules.unchanging import unchanging

_WRITES_STORAGES = "torch.save"
"""Other writers write the elements of a tensor, not the storage it lies in."""


@unchanging(frozen=True, slots=False)
class _Part:
    """All that one save wrote of one storage."""

    event: Event
    storage: Storage
    whole: int
    logical: int
    pieces: int

    @property
    def wasted(self) -> int:
        return self.whole - self.logical


class SliceSavedWhole(Rule):
    """A small view is saved, and the whole storage behind it is written with it.

    ## What it does
    In code, reports `torch.save` of a piece from `chunk`, `split`, `unbind` or `narrow`, or of rows
    of a tensor (`x[:10]`, `x[3]`), directly or in a dict, without `.clone()`.

    Reported as a note: rows that have a name or are all but the first few, and parts whose other
    parts a loop puts into the same file.

    In a recorded run, reports a `torch.save` that writes a storage at least twice as large as all
    its parts in the file, if at least 1 MB is wasted.

    ## Why is this bad?
    Ten rows of an embedding table make a file as large as the table, and after loading they hold
    all of it in memory. `torch.save` writes storages, so that views of one storage still share it
    after `torch.load`.

    ## Fix safety
    Safe where a run shows that the view is the only part of its storage in the file. Otherwise
    unsafe: parts of one storage no longer share memory after loading.

    ## References
    - pytorch/pytorch notes, "Serialization semantics", "Saving and loading tensors preserves views"
    """

    code = "STO207"
    name = "slice-saved-whole"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    triggers = (
        ("torch", "save("),
        *(("save(", f"{each}(") for each in ("chunk", "split", "unbind", "narrow")),
    )

    bad = (
        Bad(
            """\
import torch

def write_shards(weight, ranks):
    for rank, piece in enumerate(weight.chunk(ranks)):
        torch.save(piece, f"shard-{rank}.pt")
""",
            lines=(5,),
            fixed="""\
import torch

def write_shards(weight, ranks):
    for rank, piece in enumerate(weight.chunk(ranks)):
        torch.save(piece.clone(), f"shard-{rank}.pt")
""",
        ),
        Bad(
            """\
import torch

def write_rank(state, rank, ranks):
    mine = {}
    for name, value in state.items():
        mine[name] = torch.split(value, value.shape[0] // ranks)[rank]
    torch.save(mine, f"rank-{rank}.pt")
""",
            lines=(7,),
            fixed="""\
import torch

def write_rank(state, rank, ranks):
    mine = {}
    for name, value in state.items():
        mine[name] = torch.split(value, value.shape[0] // ranks)[rank].clone()
    torch.save(mine, f"rank-{rank}.pt")
""",
        ),
        Bad(
            """\
import torch

def write_embeddings(model, sequences, paths):
    found = torch.stack([model(each) for each in sequences])
    for i, path in enumerate(paths):
        torch.save({"mean": found[i, 1:].detach()}, path)
""",
            lines=(6,),
            fixed="""\
import torch

def write_embeddings(model, sequences, paths):
    found = torch.stack([model(each) for each in sequences])
    for i, path in enumerate(paths):
        torch.save({"mean": found[i, 1:].detach().clone()}, path)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def write_embeddings(model, sequences, path, chosen):
    found = torch.stack([model(each) for each in sequences])
    torch.save(found[chosen], path)
    torch.save(found[:], path)
"""
        ),
        Good(
            """\
import torch

def write_last(states: list, path):
    torch.save(states[-1], path)
    torch.save(states[:3], path)
"""
        ),
        Good(
            """\
import torch

def write_shards(weight, ranks):
    for rank, piece in enumerate(weight.chunk(ranks)):
        torch.save(piece.clone(), f"shard-{rank}.pt")
"""
        ),
        Good(
            """\
import torch

def write(names, weights):
    first = names.split(",")[0]
    torch.save({"name": first, "weights": weights}, f"{first}.pt")
"""
        ),
        Good(
            """\
import torch

def write_all(weight, ranks):
    pieces = weight.chunk(ranks)
    torch.save(pieces, "all.pt")
"""
        ),
        Good(
            """\
import torch
from torch import nn

def keep(path, ids):
    encoder = nn.LSTM(4, 8)
    torch.save(encoder(ids)[0], path)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        said: set[ast.Call] = set()
        for save, part in parts_saved(module):
            if save in said:
                continue
            said.add(save)
            text = module.text(part)
            edit = module.insert_after(part, ".clone()")
            yield self.finding(
                module,
                save,
                f"`{text}` is a part of a larger tensor, and `torch.save` writes all of the "
                "storage it lies in: each file is as large as the whole",
                confidence=Confidence.MEDIUM,
                severity=Severity.NOTE if may_be_all_there_is(module, save, part) else None,
                trail=[(part, "a view of something larger")],
                fixes=[module.fix("save a copy of the part", Safety.UNSAFE, edit)],
            )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        parts = {id(part.event): part for part in _parts(timeline)}
        for events in by_line(part.event for part in parts.values()):
            here = [parts[id(event)] for event in events]
            largest = max(here, key=lambda part: part.wasted)
            event = largest.event
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` writes all {size(largest.whole)} of the storage that "
                f"{_what(timeline, largest)} lies in; only {size(largest.logical)} are saved",
                about=largest.storage,
                fixes=[_cloned(timeline, event, largest.pieces == 1)],
                evidence={
                    "saves": str(len(here)),
                    "written for nothing": size(sum(part.wasted for part in here)),
                },
            )


def _parts(timeline: Timeline) -> Iterator[_Part]:
    """What is written for nothing: the saves of one file end with one that counts them."""
    resized = {e.storage.key: e for e in timeline.events(Did.RESIZE) if e.storage}
    open_files: dict[tuple[str, str, str], list[Event]] = {}
    for event in timeline.events(Did.SAVE):
        if event.op != _WRITES_STORAGES:
            continue
        file = (event.process, event.thread, str(event.facts.get("path")))
        if event.storage is not None:
            open_files.setdefault(file, []).append(event)
            continue
        pieces: dict[tuple[str, int], list[Event]] = {}
        for each in open_files.pop(file, []):
            if each.storage is not None:
                pieces.setdefault(each.storage.key, []).append(each)
        for key, saves in pieces.items():
            storage = saves[0].storage
            if storage is None or storage.device == "meta":
                continue
            whole = storage.nbytes
            if key in resized:
                whole = min(whole, int(resized[key].facts.get("after", whole)))
            logical = sum(int(each.facts.get("logical", 0)) for each in saves)
            part = _Part(saves[0], storage, whole, logical, len(saves))
            if part.whole >= 2 * part.logical and part.wasted >= MB:
                yield part


def _what(timeline: Timeline, part: _Part) -> str:
    key = str(part.event.facts.get("key") or "")
    if part.pieces > 1:
        return f"each of {part.pieces} parts, `{key}` among them,"
    return f"`{key}`" if key else f"a part of {named(timeline, [part.storage])}"


def _cloned(timeline: Timeline, event: Event, alone: bool) -> Fix | None:
    given = timeline.argument(event.site, "save", 0) if event.site else None
    place = _entry(given, str(event.facts.get("key") or "")) if given else None
    if place is None:
        return None
    simple = isinstance(ast.parse(place.source, mode="eval").body, _NEEDS_NO_PARENTHESES)
    text = f"{place.source}.clone()" if simple else f"({place.source}).clone()"
    safety = Safety.SAFE if alone else Safety.UNSAFE
    return timeline.fix("save a copy of the part", safety, Edit(place, text))


_NEEDS_NO_PARENTHESES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def _entry(given: Site, key: str) -> Site | None:
    """Where the tensor of that key stands: the argument itself, or a value of a dict display."""
    source = given.source
    try:
        shown = ast.parse(source, mode="eval").body
    except SyntaxError:
        return None
    if not key:
        return given if not isinstance(shown, (ast.Dict, ast.List, ast.Tuple)) else None
    if not isinstance(shown, ast.Dict):
        return None
    for name, value in zip(shown.keys, shown.values, strict=True):
        if isinstance(name, ast.Constant) and name.value == key:
            return _inside(given, value)
    return None


def _inside(given: Site, node: ast.expr) -> Site | None:
    lines = given.source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:row])) for row in range(len(lines))]
    end_line = node.end_lineno or node.lineno
    first = given.start + starts[node.lineno - 1] + node.col_offset
    last = given.start + starts[end_line - 1] + (node.end_col_offset or 0)
    text = given.source.encode()[first - given.start : last - given.start].decode()
    line = given.line + node.lineno - 1
    return Site(given.file, line, 1, given.line + end_line - 1, 1, first, last, source=text)
