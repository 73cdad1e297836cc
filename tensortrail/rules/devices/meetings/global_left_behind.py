from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import certainly
from tensortrail.rules.devices.shared.meetings.described import described, unless
from tensortrail.rules.devices.shared.meetings.following import follows
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.meetings.made_at_import import (
    Made,
    made_with_a_class,
    made_with_a_function,
)
from tensortrail.rules.devices.shared.meetings.meant import is_certain, may_be_meant
from tensortrail.rules.devices.shared.written_for.makers import made_without_device
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class GlobalLeftBehind(Rule):
    """A tensor at the top of a file stays on the CPU, and a function combines it with others.

    ## What it does
    Follows tensors that a file makes at its top without a device, such as
    `MEAN = torch.tensor([...])`. Reports an operation in a function that combines one of them with
    a tensor that was moved to a device, or that is on the device of a module.

    Also reported are two other kinds of tensor that are made when the file is read, if nothing
    moves them, in programs that may use a GPU:

    - one in the body of a module's class, `mean = torch.tensor([...])`, which a method computes
      with as `self.mean`;
    - the default of a parameter, `def blur(x, kernel=torch.ones(3, 3))`, unless all callers pass
      tensors of the CPU.

    Reported as a note: the other tensor is an argument of a plain function.

    Not reported: tensors that the file moves anywhere, and names that it assigns again.

    ## Why is this bad?
    On a GPU the operation raises "Expected all tensors to be on the same device". The tensor is
    made when the file is imported, and no `.to()` of a module moves a variable of the file. On the
    CPU everything works.

    ## Fix safety
    No fix is offered: the tensor can be moved where it is used (`MEAN.to(x.device)`, a copy each
    time), or become a buffer of a module.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV586"
    name = "global-left-behind"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.HIGH
    triggers = ("torch",)
    bad = (
        Bad(
            """\
import torch

DEVICE = torch.device("cuda")
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)


def normalized(images):
    images = images.to(DEVICE)
    return images - MEAN
""",
            lines=(9,),
            instead="""\
import torch

DEVICE = torch.device("cuda")
MEAN = torch.tensor([0.485, 0.456, 0.406], device=DEVICE).view(1, 3, 1, 1)


def normalized(images):
    images = images.to(DEVICE)
    return images - MEAN
""",
        ),
        Bad(
            """\
import torch
from torch import nn

TABLE = torch.linspace(0, 1, 64)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        return self.layer(x) * TABLE
""",
            lines=(13,),
        ),
        Bad(
            """\
import torch
import torch.nn.functional as F
from torch import nn

def blurred(x, kernel=torch.ones(3, 3) / 9):
    weight = kernel.expand(x.shape[1], 1, 3, 3)
    return F.conv2d(x, weight, groups=x.shape[1])

class Net(nn.Module):
    mean = torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1)

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(blurred(x) - self.mean)

def main():
    return Net().cuda()(torch.ones(1, 3, 8, 8).cuda())
""",
            lines=(5, 10),
        ),
    )
    good = (
        Good(
            """\
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

def blurred(x, kernel=torch.ones(3, 3) / 9, half=torch.tensor(0.5)):
    kernel = kernel.to(x.device)
    return F.conv2d(x, kernel.expand(x.shape[1], 1, 3, 3), groups=x.shape[1]) * half

def scaled(x, sizes=torch.tensor([1, 2])):
    return x.view(sizes.tolist())

def spaced(x, steps=np.linspace(0, 1, 5)):
    return np.exp(x + steps)

class Net(nn.Module):
    mean = torch.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1)
    shape = torch.zeros(3).shape

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(blurred(x) - self.mean.to(x.device))

def main():
    return Net().cuda()(torch.ones(1, 3, 8, 8).cuda())
"""
        ),
        Good(
            """\
import torch

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)


def normalized(images, device):
    images = images.to(device)
    return images - MEAN.to(device)
"""
        ),
        Good(
            """\
import torch

MEAN = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)


def normalized(images, device):
    return (images - MEAN).to(device)
"""
        ),
        Good(
            """\
import torch

HALF = torch.tensor(0.5)


def halved(images, device):
    return images.to(device) * HALF
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        named = set(_made_at_the_top(module))
        reported: set[str] = set()
        for function in functions(module) if named else ():
            if named.isdisjoint(each.id for each in module.nodes(ast.Name, function)):
                continue
            for meeting in module.places(function).meetings:
                inner = module.function_of(meeting.node) or function
                found = _left(module, inner, meeting)
                if found is not None and found[0].subject in named - reported:
                    reported.add(found[0].subject)
                    yield self._reported(module, inner, meeting, *found)
        early = (*made_with_a_class(module), *made_with_a_function(module))
        if early and module.may_use_gpu() and module.gpu_made_default() is None:
            yield from (self._made_at_import(module, each) for each in early)

    def _made_at_import(self, module: Module, each: Made) -> Finding:
        kept = "an attribute of the class" if each.name.startswith("self.") else "a default"
        return self.finding(
            module,
            each.made,
            f"`{each.name}` is {kept}, made on the default device when the file is read, and line "
            f"{each.use.lineno} uses it where the other tensors may be on a GPU",
            confidence=Confidence.MEDIUM,
            trail=[(each.made, "given no device"), (each.use, "used here")],
        )

    def _reported(
        self, module: Module, function: FunctionNode, meeting: Meeting, kept: Place, there: Place
    ) -> Finding:
        elsewhere = module.gpu_made_default()
        meant = may_be_meant(module, function, meeting, there)
        quiet = elsewhere or meant or not is_certain(module, function, there)
        made = one_line(module, kept.by) if kept.by is not None else kept.subject
        return self.finding(
            module,
            meeting.node,
            f"`{kept.subject}` was made on the default device when the file was imported, and is "
            f"combined here with a tensor {described(there)}{unless(elsewhere)}",
            severity=Severity.NOTE if quiet else None,
            trail=[(kept.by, f"`{made}` is given no device"), (meeting.node, "combined here")],
        )


def _made_at_the_top(module: Module) -> Iterator[str]:
    for call in made_without_device(module):
        statement = module.statement_of(call)
        if module.function_of(call) is None and isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (each.id for each in targets if isinstance(each, ast.Name))


def _left(module: Module, function: FunctionNode, meeting: Meeting) -> tuple[Place, Place] | None:
    for odd, other in meeting.pairs:
        kept = certainly(odd, function, Where.STAYS)
        if kept is None or kept.given or is_legal(meeting, odd):
            continue
        there = follows(module, function, other)
        if there is not None:
            return kept, there
    return None
