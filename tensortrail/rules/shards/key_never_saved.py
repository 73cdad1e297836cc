from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.project_facts import SavedFile
from tensortrail.rules.shards._keys_of_files import (
    Read,
    Saved,
    keys_read,
    mistaken_values,
    saved_elsewhere,
    saved_mappings,
)
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.shared.sentences import first_of, one_line

_TRAIN = """\
import torch

def train(net, folder, epochs):
    for epoch in range(epochs):
        torch.save({"net": net.state_dict(), "epoch": epoch}, folder + "/last_epoch.pt")
"""
_NET = """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.out = nn.Linear(width, 2)
"""


class KeyNeverSaved(Rule):
    """A checkpoint is read by a key that its writer never saves.

    ## What it does
    Compares the keys of every `torch.save({"model": ...}, path)` in a file with the keys read from
    the result of `torch.load(path)`. Reports `state["scaler"]` if no save in the file has this key
    and a save that shares other keys with this load belongs to it: it writes the same path, or both
    are in methods of one class that use the same attributes.

    A file without a save is compared with the project's saves to files of that name, if all of them
    share keys with what is read and none has this key.

    Also reports `"q2": self.q.state_dict()` beside `"q": self.q.state_dict()`, if `self.q2` loads
    the entry and the function that saves has it at hand.

    Not reported: keys in a file with a save whose keys are not known, keys that a condition names
    (`if "scaler" in state:`), and reads whose error is caught.

    ## Why is this bad?
    Resuming fails with a `KeyError`, often after hours of training, and the value is in no file.
    Until then saving and training work.

    ## Fix safety
    No fix is offered: the key may be misspelled on either side, or its value was never saved.

    ## References
    - pytorch tutorial on saving and loading a general checkpoint
    """

    code = "SHD437"
    name = "key-never-saved"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.HIGH
    triggers = (("torch", "load("),)
    bad = (
        Bad(
            """\
import torch

def save(model, optimizer, path):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

def resume(model, optimizer, scaler, path):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scaler.load_state_dict(state["scaler"])
""",
            lines=(10,),
            instead="""\
import torch

def save(model, optimizer, scaler, path):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    state["scaler"] = scaler.state_dict()
    torch.save(state, path)

def resume(model, optimizer, scaler, path):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scaler.load_state_dict(state["scaler"])
""",
        ),
        Bad(
            """\
import torch

class Trainer:
    def keep(self, epoch):
        torch.save({"net": self.net.state_dict(), "epoch": epoch}, self.folder / "last.pt")

    def go_on(self, file):
        state = torch.load(file, map_location="cpu")
        self.net.load_state_dict(state["model"])
        self.epoch = state["epoch"]
""",
            lines=(9,),
        ),
        Bad(
            """\
import torch
from net import Net

def evaluate(folder):
    state = torch.load(folder + "/last_epoch.pt", map_location="cpu")
    net = Net(state["width"])
    net.load_state_dict(state["net"])
    return net
""",
            lines=(6,),
            files={"train.py": _TRAIN, "net.py": _NET},
        ),
        Bad(
            """\
import torch

class Agent:
    def save(self, path):
        state = {"q": self.q.state_dict(), "q2": self.q.state_dict(), "size": self.q2.size}
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path, map_location="cpu")
        self.q.load_state_dict(state["q"])
        self.q2.load_state_dict(state["q2"])
""",
            lines=(5,),
            instead="""\
import torch

class Agent:
    def save(self, path):
        state = {"q": self.q.state_dict(), "q2": self.q2.state_dict(), "size": self.q2.size}
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path, map_location="cpu")
        self.q.load_state_dict(state["q"])
        self.q2.load_state_dict(state["q2"])
""",
        ),
    )
    good = (
        Good(
            """\
import torch

class Agent:
    def save(self, path):
        torch.save({"net": self.net.state_dict(), "average": self.net.state_dict()}, path)

    def load(self, path):
        state = torch.load(path, map_location="cpu")
        self.net.load_state_dict(state["net"])
        self.average.load_state_dict(state["average"])
"""
        ),
        Good(
            """\
import torch

def save(model, path):
    torch.save({"model": model.state_dict(), "epoch": 3}, path)

def resume(model, scaler, path):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    if "scaler" in state:
        scaler.load_state_dict(state["scaler"])
"""
        ),
        Good(
            """\
import torch

def save(model, path, extra):
    torch.save({"model": model.state_dict(), **extra}, path)

def resume(model, scaler, path):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    scaler.load_state_dict(state["scaler"])
"""
        ),
        Good(
            """\
import torch

def save(model, path):
    torch.save({"model": model.state_dict(), "epoch": 3}, path)

def pretrained(model, url):
    state = torch.load(url, map_location="cpu")
    model.load_state_dict(state["model"])
    return state["args"]
"""
        ),
        Good(
            """\
import torch

def keep(model, folder):
    torch.save({"net": model.state_dict()}, folder + "/best_epoch.pt")

def resume(model, folder):
    state = torch.load(folder + "/last_epoch.pt", map_location="cpu")
    model.load_state_dict(state["net"])
    return state["epoch"]
""",
            files={"train.py": _TRAIN},
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        yield from self._mistaken(module)
        reads = list(keys_read(module)) if not in_tests(module) else []
        saved = saved_mappings(module) if reads else None
        if saved is None:
            return
        known = frozenset().union(*(each.keys for each in saved))
        shared = {each.load for each in reads if each.key in known}
        for read in reads:
            others = saved_elsewhere(module, read.load)
            if any(each.keys is None or read.key in each.keys for each in others):
                continue
            of_same = next((each for each in saved if _is_of(module, read, each)), None)
            if read.key not in known and read.load in shared and of_same is not None:
                yield self._reported(module, read, of_same)
            elif _is_written_here(module, read.key):
                continue  # by a helper that is given the mapping
            elif not saved and others and _share_keys(others, read, reads):
                yield self._of_another(module, read, others[0])

    def _mistaken(self, module: Module) -> Iterator[Finding]:
        for found in mistaken_values(module) if not in_tests(module) else ():
            yield self.finding(
                module,
                found.value,
                f'`"{found.key}"` holds the weights of `{found.owner}`, which has a key of its own,'
                f" and line {found.load.lineno} loads them into `{found.taker}`",
                trail=[(found.load, "loaded here")],
            )

    def _of_another(self, module: Module, read: Read, saved: SavedFile) -> Finding:
        has = first_of([f'"{each}"' for each in sorted(saved.keys or ())], 8)
        return self.finding(
            module,
            read.node,
            f"no save of this file has the key `{one_line(module, read.node.slice)}`: line "
            f"{saved.line} of {os.path.basename(saved.path)} writes {has}",
            trail=[(read.load, "loaded here")],
        )

    def _reported(self, module: Module, read: Read, saved: Saved) -> Finding:
        has = first_of([f'"{each}"' for each in sorted(saved.keys)], 8)
        return self.finding(
            module,
            read.node,
            f"no save of this file has the key `{one_line(module, read.node.slice)}`: line "
            f"{saved.call.lineno} writes {has}",
            trail=[(saved.call, "written here"), (read.load, "and loaded here")],
        )


def _is_written_here(module: Module, key: str) -> bool:
    return any(
        isinstance(each, ast.Constant) and each.value == key
        for mapping in module.nodes(ast.Dict)
        for each in mapping.keys
    )


def _share_keys(saved: list[SavedFile], read: Read, reads: list[Read]) -> bool:
    """Every save has another key that is read of the same load."""
    keys = {each.key for each in reads if each.load is read.load}
    return all(keys & (each.keys or frozenset()) for each in saved)


def _is_of(module: Module, read: Read, saved: Saved) -> bool:
    """The save writes what is read, by the name of the file, or as both are methods of a class
    that concern the same attributes."""
    if read.path == saved.path:
        return True
    cls = module.class_of(read.load)
    if cls is None or module.class_of(saved.call) is not cls:
        return False
    return bool(_own(module, saved.call) & _own(module, module.function_of(read.load) or cls))


def _own(module: Module, node: ast.AST) -> set[str]:
    """The attributes of `self` that stand in it."""
    return {e.attr for e in module.nodes(ast.Attribute, node) if is_self(e.value)}
