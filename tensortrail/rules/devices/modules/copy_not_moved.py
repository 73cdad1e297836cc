from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.combined_models import combined_models
from tensortrail.rules.devices.shared.modules.left_beside_model import (
    Left,
    kept_beside,
    left_beside,
)
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class CopyNotMoved(Rule):
    """A copy of a model is not moved with the model, and the parameters of both are combined.

    ## What it does
    Looks at two models whose parameters are combined, as for a moving average or a target network:
    `for p, q in zip(average.parameters(), model.parameters())`, in the same function or in one of
    the same file. Reports the one that is never moved, if the other one is, and if it

    - was copied before the move;
    - was made by the same class as the other one; or
    - is an object of a project class that copies the parameters when it is created.

    Not reported: a copy that is passed to code that may move it; parameters that are moved where
    they are combined; copies in modules, whose `to` moves both.

    ## Why is this bad?
    The first update on a GPU raises "Expected all tensors to be on the same device":
    `model.to(device)` moves the parameters of `model` only. On the CPU everything works.

    ## Fix safety
    No fix is offered: either the copy is made after the move, or it is moved as well.

    ## References
    - pytorch documentation of `torch.nn.Module.to` and `torch.optim.swa_utils`
    """

    code = "DEV599"
    name = "copy-not-moved"
    severity = Severity.WARNING
    proven = False
    triggers = (("parameters(", ".to("), ("parameters(", ".cuda("))

    bad = (
        Bad(
            """\
import copy

import torch


def train(model, batches):
    average = copy.deepcopy(model).eval()
    model.cuda()
    for batch in batches:
        model(batch.cuda()).sum().backward()
        with torch.no_grad():
            for p, q in zip(average.parameters(), model.parameters()):
                p.mul_(0.99).add_(q, alpha=0.01)
""",
            lines=(7,),
            instead="""\
import copy

import torch


def train(model, batches):
    model.cuda()
    average = copy.deepcopy(model).eval()
    for batch in batches:
        model(batch.cuda()).sum().backward()
        with torch.no_grad():
            for p, q in zip(average.parameters(), model.parameters()):
                p.mul_(0.99).add_(q, alpha=0.01)
""",
        ),
        Bad(
            """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x):
        return self.a(x)


def follow(slow, fast, tau):
    for p, q in zip(slow.parameters(), fast.parameters()):
        p.data.copy_(tau * q.data + (1 - tau) * p.data)


class Agent:
    def __init__(self, device):
        self.policy = Net().to(device)
        self.target = Net()
        self.target.load_state_dict(self.policy.state_dict())

    def step(self):
        follow(self.target, self.policy, 0.005)
""",
            lines=(21,),
        ),
        Bad(
            """\
class Average:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = {}
        for name, p in model.named_parameters():
            self.shadow[name] = p.data.clone()

    def update(self):
        for name, p in self.model.named_parameters():
            new = (1 - self.decay) * p.data + self.decay * self.shadow[name]
            self.shadow[name] = new.clone()


def train(build, device):
    model = build()
    average = Average(model, 0.99)
    model.to(device)
    for _ in range(3):
        average.update()
""",
            lines=(16,),
        ),
        Bad(
            """\
from averages import Average


def train(build, device):
    model = build()
    average = Average(model)
    model.to(device)
    list(model.parameters())
    for _ in range(3):
        average.update(model)
""",
            lines=(6,),
            files={
                "averages.py": """\
import copy


class Average:
    def __init__(self, model):
        self.module = copy.deepcopy(model)

    def update(self, model):
        for ours, theirs in zip(self.module.parameters(), model.parameters()):
            ours.lerp_(theirs, 0.01)
"""
            },
        ),
    )
    good = (
        Good(
            """\
import copy


def follow(slow, fast, tau):
    for p, q in zip(slow.parameters(), fast.parameters()):
        p.data.copy_(tau * q.data + (1 - tau) * p.data)


def moved_before(model, device):
    model.to(device)
    average = copy.deepcopy(model)
    follow(average, model, 0.1)


def moved_both(model, device):
    average = copy.deepcopy(model)
    model.to(device)
    average.to(device)
    follow(average, model, 0.1)


def prepared(model, device, prepare):
    average = copy.deepcopy(model)
    model.to(device)
    average = prepare(average)
    follow(average, model, 0.1)


def in_turn(model, device):
    average = copy.deepcopy(model)
    for each in (model, average):
        each.to(device)
    model.to(device)
    follow(average, model, 0.1)


def on_the_cpu(model, device):
    average = copy.deepcopy(model)
    model.to(device)
    for p, q in zip(average.parameters(), model.parameters()):
        p.mul_(0.99).add_(q.to(p.device), alpha=0.01)
    for p, q in zip(average.parameters(), model.parameters()):
        p.data.copy_(q)
"""
        ),
        Good(
            """\
import copy

from torch import nn


class Teacher(nn.Module):
    def __init__(self, student, device):
        super().__init__()
        self.student = student
        self.teacher = copy.deepcopy(self.student)
        self.student.to(device)

    def follow(self):
        for p, q in zip(self.teacher.parameters(), self.student.parameters()):
            p.lerp_(q, 0.1)
"""
        ),
        Good(
            """\
class Average:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = [p.clone() for p in model.parameters()]

    def update(self, model):
        for p, q in zip(self.shadow, model.parameters()):
            p.mul_(self.decay).add_(q, alpha=1 - self.decay)


def train(build, device):
    model = build().to(device)
    average = Average(model, 0.99)
    model.to(device)
    average.update(model)


def plain(build):
    model = build()
    average = Average(model, 0.99)
    average.update(model)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        pairs = (left_beside(module, each) for each in combined_models(module))
        for left in (*pairs, *kept_beside(module)):
            if left is not None and left.made not in reported:
                reported.add(left.made)
                yield self._reported(module, left)

    def _reported(self, module: Module, left: Left) -> Finding:
        return self.finding(
            module,
            left.made,
            f"`{left.name}` is never moved: line {left.move.lineno} moves `{left.model}` only, and "
            f"line {left.used.lineno} combines the parameters of both",
            trail=[
                (left.made, "made here, and never moved"),
                (left.move, f"`{one_line(module, left.move)}` moves the other one"),
                (left.used, "both have to be on one device"),
            ],
        )
