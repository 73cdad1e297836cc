from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Near, Rule
from tensortrail.rules.shared.objects import called, given

_METHOD = "state_dict"
_TAKES_A_STATE = frozenset({"save", "save_file", "load_state_dict", "deepcopy", "save_model"})


class StateDictNotCalled(Rule):
    """`state_dict` is saved without being called: the file holds a method, not weights.

    ## What it does
    Reports `torch.save(model.state_dict, path)`, `{"model": model.state_dict}` and
    `load_state_dict(other.state_dict)`, where `state_dict` is a method that is not called.

    ## Why is this bad?
    The save succeeds, as a method can be pickled together with the whole model. Loading the file
    gives a method instead of weights, often after the training is gone.

    ## Fix safety
    The fix adds the call. Unsafe where the attribute is a state dict of your own.

    ## References
    - pytorch documentation, saving and loading models
    """

    code = "SHD430"
    name = "state-dict-not-called"
    severity = Severity.ERROR
    proven = False
    triggers = (Near(_METHOD, re.compile(rb".*\.state_dict[ \t]*(?:[,})#\r\n\\]|$)")),)

    bad = (
        Bad(
            """\
import torch

def save(model, optimizer, path):
    state = {"model": model.state_dict, "optimizer": optimizer.state_dict()}
    torch.save(state, path)
    torch.save(model.state_dict, path)
""",
            lines=(4, 6),
            fixed="""\
import torch

def save(model, optimizer, path):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path)
    torch.save(model.state_dict(), path)
""",
        ),
        Bad(
            """\
import copy

def copied(model, other):
    best = dict(weights=model.state_dict, step=3)
    model.load_state_dict(copy.deepcopy(other.state_dict))
    return best
""",
            lines=(4, 5),
            fixed="""\
import copy

def copied(model, other):
    best = dict(weights=model.state_dict(), step=3)
    model.load_state_dict(copy.deepcopy(other.state_dict()))
    return best
""",
        ),
    )
    good = (
        Good(
            """\
import torch

class Simulator:
    @property
    def state(self):
        return {}

    state_dict = state

def save(simulator: Simulator, path):
    torch.save(simulator.state_dict, path)
"""
        ),
        Good(
            """\
import torch

def save(model, run, path):
    torch.save(model.state_dict(), path)
    torch.save({"model": run.weights.state_dict()}, path)
    plain = model.state_dict
    model.state_dict = wrapped(plain)
    run.register(model.state_dict, prefix="a")
"""
        ),
        Good(
            """\
import torch

class Checkpoint:
    def __init__(self, path):
        self.state_dict = torch.load(path, map_location="cpu")

    def save(self, path):
        torch.save(self.state_dict, path)
        torch.save({"weights": self.state_dict}, path)
"""
        ),
        Good(
            """\
from pathlib import Path
from kept import Checkpoint

def restore(model, path):
    checkpoint = Checkpoint.from_path(Path(path))
    model.load_state_dict(checkpoint.state_dict)
""",
            files={
                "kept.py": """\
from dataclasses import dataclass
import torch

@dataclass
class Checkpoint:
    state_dict: dict

    @staticmethod
    def from_path(path):
        return Checkpoint(torch.load(path, map_location="cpu"))
"""
            },
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if _is_bound_as_an_attribute(module):
            return
        for node in module.nodes(ast.Attribute):
            if node.attr != _METHOD or not _is_taken_for_weights(module, node):
                continue
            if _is_of_another_class(module, node.value):
                continue
            if module.is_property_in_project(_METHOD):
                continue
            edit = module.insert_after(node, "()")
            yield self.finding(
                module,
                node,
                f"`{module.text(node)}` is a method: it is not called, so no weights are taken",
                fixes=[module.fix("call it", Safety.UNSAFE, edit)],
            )


def _is_bound_as_an_attribute(module: Module) -> bool:
    """An object of the file keeps weights under this name, or a property gives them."""
    stored = any(
        each.attr == _METHOD and isinstance(each.ctx, ast.Store) and _is_own(module, each)
        for each in module.nodes(ast.Attribute)
    )
    return (
        stored
        or any(
            each.target.id == _METHOD
            for each in module.nodes(ast.AnnAssign)
            if isinstance(each.target, ast.Name)
        )
        or any(
            each.name == _METHOD and bool(each.decorator_list)
            for each in module.nodes(ast.FunctionDef)
        )
    )


def _is_of_another_class(module: Module, owner: ast.expr) -> bool:
    """An object of the project that is no module: its state may be a property or a field."""
    value = module.value_of(owner)
    made = [each.func for each in value.origins if isinstance(each, ast.Call)]
    classes = [value.cls, *(module.qualified(each).rpartition(".")[0] for each in made)]
    facts = [module.class_facts(each) for each in classes if each]
    return any(each is not None and each.file and not each.is_module for each in facts)


def _is_own(module: Module, node: ast.Attribute) -> bool:
    return module.text(node.value) == "self"


def _is_taken_for_weights(module: Module, node: ast.Attribute) -> bool:
    """It is a value of a dict, or what is saved, loaded or copied."""
    around = module.parent(node)
    if isinstance(around, ast.keyword):
        around = module.parent(around)
        named_dict = isinstance(around, ast.Call) and called(around) == "dict"
        if named_dict:
            return True
    if isinstance(around, ast.Dict):
        return node in around.values and not _is_own(module, node)
    return (
        isinstance(around, ast.Call)
        and called(around) in _TAKES_A_STATE
        and node in given(around)[:1]
    )
