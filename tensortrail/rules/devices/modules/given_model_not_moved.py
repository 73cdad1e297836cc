from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.asked_as_modules import asked_as_modules
from tensortrail.rules.shared.given_devices import says_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.words import Kind


class GivenModelNotMoved(Rule):
    """A loaded model is put on the device, but a model that is passed as an object is not.

    ## What it does
    Looks at a choice by `isinstance(model, ...)`: in one branch, a call with a device loads or
    builds the model; in the other one, the model is used as it is. Reports the second, as a note,
    if nothing moves the model afterwards.

    Not reported: other objects than modules.

    ## Why is this bad?
    The inputs go to the device, but the caller's model may be elsewhere. The first call then raises
    "Expected all tensors to be on the same device".

    ## Fix safety
    No fix is offered: a move would change the caller's object.

    ## References
    - atomistic-machine-learning/schnetpack, `interfaces/ase_interface.py`
    """

    code = "DEV660"
    name = "given-model-not-moved"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    proven = False
    triggers = (("isinstance(", "torch", "device"),)

    bad = (
        Bad(
            """\
import torch
from torch import nn

def opened(model, device):
    if isinstance(model, str):
        net = torch.load(model, map_location=device, weights_only=False)
    else:
        net = model
    return net.eval()
""",
            lines=(8,),
            instead="""\
import torch
from torch import nn

def opened(model, device):
    if isinstance(model, str):
        net = torch.load(model, map_location=device, weights_only=False)
    else:
        net = model.to(device)
    return net.eval()
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Ensemble:
    def __init__(self, models, read, device):
        self.device = torch.device(device)
        self.models = [
            each if isinstance(each, nn.Module) else read(each, self.device) for each in models
        ]
""",
            lines=(8,),
            instead="""\
import torch
from torch import nn

class Ensemble:
    def __init__(self, models, read, device):
        self.device = torch.device(device)
        self.models = [
            each.to(self.device) if isinstance(each, nn.Module) else read(each, self.device)
            for each in models
        ]
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

def opened(model, device):
    if isinstance(model, str):
        net = torch.load(model, map_location=device, weights_only=False)
    else:
        net = model
    net = net.to(device)
    return net.eval()
"""
        ),
        Good(
            """\
import torch

def rows(given, device):
    return given if isinstance(given, torch.Tensor) else torch.tensor(given, device=device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for choice in (*_in_expressions(module), *_in_statements(module)):
            if not _is_of_modules(module, choice) or _is_moved(module, choice):
                continue
            shown, line = module.text(choice.given), choice.loaded.lineno
            yield self.finding(
                module,
                choice.given,
                f"`{shown}` is not moved if the caller passes an object, while line {line} puts a "
                "loaded model on a device",
                trail=[(choice.loaded, "loaded onto the device")],
            )


class _Choice(NamedTuple):
    test: ast.Call
    given: ast.Name
    loaded: ast.expr
    becomes: ast.expr
    """What the model is called then."""


def _in_expressions(module: Module) -> Iterator[_Choice]:
    """`model if isinstance(model, nn.Module) else load(model, device)`."""
    for node in module.nodes(ast.IfExp):
        statement = module.statement_of(node)
        if isinstance(statement, ast.Assign):
            yield from _choice(module, node.test, node.body, node.orelse, statement.targets[0])


def _in_statements(module: Module) -> Iterator[_Choice]:
    """The same, where each branch ends with an assignment to the name."""
    for node in module.nodes(ast.If):
        ends = [block[-1] if block else None for block in (node.body, node.orelse)]
        one, other = ends
        if not isinstance(one, ast.Assign) or not isinstance(other, ast.Assign):
            continue
        target = one.targets[0]
        if module.text(target) == module.text(other.targets[0]):
            yield from _choice(module, node.test, one.value, other.value, target)


def _choice(
    module: Module, test: ast.expr, one: ast.expr, other: ast.expr, becomes: ast.expr
) -> Iterator[_Choice]:
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    if not isinstance(test, ast.Call) or called(test) != "isinstance" or not test.args:
        return
    for given, loaded in ((one, other), (other, one)):
        asked = isinstance(given, ast.Name) and module.text(test.args[0]) == given.id
        if asked and isinstance(given, ast.Name) and says_device(module, loaded):
            yield _Choice(test, given, loaded, becomes)


def _is_of_modules(module: Module, choice: _Choice) -> bool:
    """The test asks for a module, the loader gives one, or it is used as one."""
    kinds = choice.test.args[1:2]
    if any(module.qualified(each) == "torch.nn.Module" for each in kinds):
        return True
    if module.kind_of(choice.loaded) is Kind.MODULE:
        return True
    around = module.function_of(choice.given)
    return around is not None and module.text(choice.becomes) in asked_as_modules(
        module, "eval", inside=around
    )


def _is_moved(module: Module, choice: _Choice) -> bool:
    """Itself, what it becomes, or what is made of it."""
    names = {choice.given.id, module.text(choice.becomes)}
    around = set(module.ancestors(choice.given))
    for call in module.calls(*TO_DEVICE, inside=module.function_of(choice.given)):
        owner = receiver(call)
        if call in around or (owner is not None and module.text(owner) in names):
            return True
    return False
