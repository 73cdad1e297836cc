from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensortrail.findings import Confidence, Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shards._given_shared import Given, ends_of, given_shared
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.sentences import one_line

REFUSES = "safetensors.save_file"
_STATE_DICT = ".state_dict()"


class SharedMemorySaved(Rule):
    """A tensor is saved under several names in a format that refuses shared memory.

    ## What it does
    In a recorded run, reports `safetensors.torch.save_file` of a dict that has the same memory
    under several keys, as tied weights have, and names the keys.

    In code, reports `save_file` of the state dict of a class that ties its weights
    (`self.head.weight = self.embed.weight`).

    Reported as a note: `save_file` of a state dict that another branch writes with `torch.save`.

    Not reported: functions that clone these weights or look for names that share memory.

    ## Why is this bad?
    safetensors stores each tensor once and raises an error. Cloning one of the two makes the save
    succeed, and the file no longer has the tie.

    ## What you may see
    ```
    RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk
    ```

    ## Fix safety
    Unsafe: `save_model` leaves out one of the names, and only `load_model` reads the result.

    ## References
    - huggingface/safetensors documentation, "Torch shared tensors"
    """

    code = "SHD416"
    name = "shared-memory-saved"
    since = "0.2.0"
    severity = Severity.ERROR

    confidence = Confidence.MEDIUM
    triggers = (("safetensors", "save_file", "state_dict"),)

    bad = (
        Bad(
            """\
from safetensors.torch import save_file
from torch import nn

class Speaker(nn.Module):
    def __init__(self, words, n):
        super().__init__()
        self.embed = nn.Embedding(words, n)
        self.head = nn.Linear(n, words, bias=False)
        self.head.weight = self.embed.weight

def save(path):
    model = Speaker(100, 8)
    save_file(model.state_dict(), path)
""",
            lines=(13,),
            instead="""\
from safetensors.torch import save_model
from torch import nn

class Speaker(nn.Module):
    def __init__(self, words, n):
        super().__init__()
        self.embed = nn.Embedding(words, n)
        self.head = nn.Linear(n, words, bias=False)
        self.head.weight = self.embed.weight

def save(path):
    model = Speaker(100, 8)
    save_model(model, path)
""",
        ),
        Bad(
            """\
from safetensors.torch import save_file
from torch import nn

class Speaker(nn.Module):
    def __init__(self, words, n, tied):
        super().__init__()
        self.embed = nn.Embedding(words, n)
        self.head = nn.Linear(n, words, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def keep(self, path):
        weights = self.state_dict()
        save_file(weights, path)
""",
            lines=(14,),
        ),
        Bad(
            """\
import torch
from safetensors.torch import save_file as write

def keep(model, path, safe):
    weights = model.state_dict()
    if safe:
        write(weights, path, metadata={"format": "pt"})
    else:
        torch.save(weights, path)
""",
            lines=(7,),
        ),
        Bad(
            """\
from safetensors.torch import save_file
from torch import nn

class Speaker(nn.Module):
    def __init__(self, words, n):
        super().__init__()
        self.embed = nn.Embedding(words, n)
        self.head = nn.Linear(n, words, bias=False)
        self.head.weight = self.embed.weight

def export(model, path):
    save_file(model.state_dict(), path)

export(Speaker(10, 4), "speaker.safetensors")
""",
            lines=(12,),
        ),
    )
    good = (
        Good(
            """\
import torch
from safetensors.torch import save_file

def keep(model, path, safe):
    weights = model.state_dict()
    if safe:
        weights = {name: each.clone() for name, each in weights.items()}
        save_file(weights, path)
    else:
        torch.save(weights, path)
"""
        ),
        Good(
            """\
import torch
from safetensors.torch import save_model

def keep(model, path, safe):
    if safe:
        save_model(model, path)
    else:
        torch.save(model.state_dict(), path)
"""
        ),
        Good(
            """\
from safetensors.torch import save_file
from torch import nn

class Speaker(nn.Module):
    def __init__(self, words, n):
        super().__init__()
        self.embed = nn.Embedding(words, n)
        self.head = nn.Linear(n, words, bias=False)

def save(path):
    model = Speaker(100, 8)
    save_file(model.state_dict(), path)
"""
        ),
        Good(
            """\
import torch
from safetensors.torch import save_file

def keep(rows: torch.Tensor, path, safe):
    found = {"rows": rows, "mean": rows.mean(0)}
    if safe:
        save_file(found, path)
    else:
        torch.save(found, path)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for each in given_shared(module):
            yield self._of_code(module, each)

    def _of_code(self, module: Module, given: Given) -> Finding:
        shown = one_line(module, given.weights)
        if given.tie is not None:
            tied = " and ".join(one_line(module, each) for each in ends_of(given.tie))
            return self.finding(
                module,
                given.call,
                f"`{shown}` has one tensor under two names, {tied}, which `save_file` refuses",
                severity=Severity.WARNING if module.guards_of(given.tie) else Severity.ERROR,
                trail=[(given.tie, "tied here"), (given.call, "given to safetensors")],
            )
        assert given.other is not None
        return self.finding(
            module,
            given.call,
            f"`save_file` refuses `{shown}` of a model with tied weights, which line "
            f"{given.other.lineno} writes with `torch.save`",
            severity=Severity.NOTE,
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        saves = (each for each in timeline.events(Did.SAVE) if each.op == REFUSES)
        for events in by_line(saves):
            shared = _shared(events)
            if not shared:
                continue
            names = [" and ".join(f"`{key}`" for key in keys) for keys in shared[:3]]
            more = f", and {len(shared) - 3} more" if len(shared) > 3 else ""
            yield self.finding_in_run(
                timeline,
                events[0],
                f"`{REFUSES}` is given the same memory under several names, which it refuses: "
                f"{', '.join(names)}{more}",
                fixes=[_save_model(timeline, events[0], shared[0])],
                evidence={"shared": str(len(shared))},
            )


def _shared(events: list[Event]) -> list[list[str]]:
    """The keys of each storage that is wholly covered by more than one of them."""
    keys: dict[tuple[str, int], list[str]] = defaultdict(list)
    for event in events:
        storage = event.storage
        if storage is not None and event.facts.get("logical") == storage.nbytes:
            keys[storage.key].append(str(event.facts.get("key")))
    return [sorted(set(each)) for each in keys.values() if len(set(each)) > 1]


def _save_model(timeline: Timeline, event: Event, keys: list[str]) -> Fix:
    text = f"save with `safetensors.torch.save_model`, or leave `{keys[-1]}` out of the dict"
    call = timeline.call(event.site, "save_file") if event.site else None
    given = timeline.argument(event.site, "save_file") if event.site else None
    if call is None or given is None or not given.source.endswith(_STATE_DICT):
        return Fix(text, Safety.DISPLAY, ())
    model = given.source.removesuffix(_STATE_DICT)
    new = call.source.replace(given.source, model, 1).replace("save_file", "save_model", 1)
    edits = [Edit(call, new)]
    if call.source.startswith("save_file"):
        line = "from safetensors.torch import save_model\n"
        edits.append(timeline.insert(call.file, _first_import(timeline, call.file), line))
    return edited(timeline, text, *edits)


def _first_import(timeline: Timeline, file: str) -> int:
    tree = timeline.tree(file)
    for node in tree.body if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            return node.lineno
    return 1
