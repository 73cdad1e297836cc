from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shards._states_of_files import (
    Loaded,
    SavedStates,
    loaded_states,
    saved_states,
)
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.shared.sentences import first_of


class StateNotRestored(Rule):
    """A checkpoint has the state of an optimizer, scheduler or average that a resume leaves out.

    ## What it does
    Compares `torch.save({"model": model.state_dict(), ...}, path)` with the load of the same path
    in the same file of code. Reports a load that restores at least two of the states, one of them
    of an optimizer or beside a count of steps, and never asks for another one, although the
    function or class has the object that it belongs to.

    Not reported: a load whose result is returned, gone through or given to others; one that
    restores the model alone.

    ## Why is this bad?
    The object starts anew while everything else goes on: a scheduler begins with its warm-up, a
    scaler with its first scale, an average with the weights of the start. Training goes on without
    an error, and worse than before the interruption.

    ## Fix safety
    No fix is offered: checkpoints that were written before may lack the key.

    ## References
    - pytorch tutorial on saving and loading a general checkpoint for resuming training
    """

    code = "SHD469"
    name = "state-not-restored"
    severity = Severity.WARNING
    proven = False
    triggers = (("save(", "load_state_dict"),)

    bad = (
        Bad(
            """\
import torch

class Trainer:
    def save(self, path):
        torch.save({
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "step": self.step,
        }, path)

    def resume(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
""",
            lines=(13,),
            instead="""\
import torch

class Trainer:
    def save(self, path):
        torch.save({
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "step": self.step,
        }, path)

    def resume(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.step = state["step"]
""",
        ),
        Bad(
            """\
import torch

def main(model, optimizer, scaler, args):
    if args.resume:
        state = torch.load(args.path, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state.get("optimizer"))
    for step in range(args.steps):
        scaler.scale(model()).backward()
        scaler.step(optimizer)
        optimizer.zero_grad()
    content = {"model": model.state_dict(), "scaler": scaler.state_dict()}
    content["optimizer"] = optimizer.state_dict()
    torch.save(content, args.path)
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

class Trainer:
    def save(self, path):
        torch.save({
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": self.average.state_dict(),
            "step": self.step,
        }, path)

    def weights(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])

    def resume(self, path, keeps_average):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]
        if keeps_average and "average" in state:
            self.average.load_state_dict(state["average"])

    def handed(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        return state
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        saves = list(saved_states(module))
        for loaded in loaded_states(module) if saves else ():
            same = [each for each in saves if _is_of(module, each, loaded)]
            left = [_left(module, each, loaded) for each in same]
            if same and all(left) and _resumes(module, same[0], loaded):
                yield self._reported(module, loaded, same[0], sorted(left[0]))

    def _reported(
        self, module: Module, loaded: Loaded, saved: SavedStates, left: list[str]
    ) -> Finding:
        owners = first_of([f"`{saved.owners[each]}`" for each in left], 3)
        others = first_of([f"`{each}`" for each in sorted(loaded.restored)], 3)
        return self.finding(
            module,
            loaded.call,
            f"line {saved.call.lineno} saves the state of {owners} too, and this load restores "
            f"{others} without it: after a resume it starts anew",
            trail=[(saved.call, "saved here"), (loaded.call, "loaded here")],
        )


def _is_of(module: Module, saved: SavedStates, loaded: Loaded) -> bool:
    """The same file, by how its name is written in the functions or the class."""
    return saved.path == loaded.path and module.class_of(saved.call) is module.class_of(loaded.call)


def _left(module: Module, saved: SavedStates, loaded: Loaded) -> frozenset[str]:
    """Keys of states that the load does not ask for, of objects that it has at hand."""
    left = (key for key in saved.owners if key not in loaded.keys)
    return frozenset(key for key in left if _is_at_hand(module, loaded.call, saved.owners[key]))


def _is_at_hand(module: Module, call: ast.Call, owner: str) -> bool:
    first, function = owner.partition(".")[0], module.function_of(call)
    if not owner or function is None or first == "self":
        return bool(owner)
    stored = (each.id for each in module.nodes(ast.Name, function))
    return first in {*names_of_parameters(function), *stored}


def _resumes(module: Module, saved: SavedStates, loaded: Loaded) -> bool:
    """It restores two states, of which one makes steps or has a count of them beside it."""
    restored = [key for key in loaded.restored if saved.owners.get(key)]
    counts = any(not saved.owners.get(key, "x") for key in loaded.keys)
    steps = {
        module.text(owner)
        for call in module.calls("step", "zero_grad")
        if (owner := receiver(call)) is not None
    }
    return len(restored) > 1 and (counts or any(saved.owners[key] in steps for key in restored))
