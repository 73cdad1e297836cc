from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.fresh._trained_by import Optimized, optimized_by_class, optimized_here
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class ReplacedWithoutOptimizer(Rule):
    """A model is replaced by another one after the optimizer was made of its parameters.

    ## What it does
    Reports `model = Net(...)`, `copy.deepcopy(model)`, `Net.from_pretrained(...)` or
    `torch.load(...)`, if the same function made an optimizer of `model.parameters()` before, calls
    the new model and goes on to step that optimizer.

    Also reports attributes: `__init__` makes `self.optimizer` of `self.model.parameters()`, a
    method steps it, and a method that runs later stores another model in `self.model`.

    Not reported: an optimizer that is made again or given the new parameters, and a new object
    around the old one, such as `model = DataParallel(model)`.

    ## Why is this bad?
    The loss stays where it was, and no error is raised. The new model gets gradients, but the
    optimizer holds the parameters of the first one.

    ## Fix safety
    No fix is offered: the optimizer belongs after the line that makes the model. `load_state_dict`
    loads weights into the existing model.

    ## References
    - pytorch documentation, `torch.optim`: constructing an optimizer
    """

    code = "NEW313"
    name = "replaced-without-optimizer"
    severity = Severity.ERROR
    proven = False
    triggers = (("parameters(", "step("),)

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 2)

    def forward(self, x):
        return self.fc(x)

def train(batches):
    model = Net(4)
    optimizer = torch.optim.Adam(model.parameters())
    model = Net(8).cuda()
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
""",
            lines=(15,),
            instead="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 2)

    def forward(self, x):
        return self.fc(x)

def train(batches):
    model = Net(8).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
""",
        ),
        Bad(
            """\
import copy
import torch

def tune(model, batches):
    optimizer = torch.optim.SGD([{"params": model.parameters()}], lr=0.1)
    model = copy.deepcopy(model)
    for x in batches:
        model(x).sum().backward()
        optimizer.step()
""",
            lines=(6,),
        ),
        Bad(
            """\
import torch

class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def resume(self, path):
        self.model = torch.load(path, weights_only=False)

    def step(self, x):
        self.model(x).sum().backward()
        self.optimizer.step()
""",
            lines=(9,),
        ),
    )
    good = (
        Good(
            """\
import copy
import torch
from torch import nn

def made_again(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches:
        model(x).sum().backward()
        optimizer.step()

def wrapped(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = nn.DataParallel(model)
    for x in batches:
        model(x).sum().backward()
        optimizer.step()

def the_best_at_the_end(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches:
        model(x).sum().backward()
        optimizer.step()
    model = torch.load("best.pt", weights_only=False)
    return [model(x) for x in batches]

def each_fold(folds):
    for batches in folds:
        model = nn.Linear(8, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x in batches:
            model(x).sum().backward()
            optimizer.step()

def averaged(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    average = copy.deepcopy(model)
    for x in batches:
        model(x).sum().backward()
        optimizer.step()
    return average(x)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Trainer:
    def __init__(self, build):
        self.build = build
        self.renew()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def renew(self):
        self.model = nn.Linear(8, 2)

    def step(self, x):
        self.model(x).sum().backward()
        self.optimizer.step()

class Restarting:
    def __init__(self):
        self.model = nn.Linear(8, 2)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def restart(self):
        self.model = nn.Linear(8, 2)
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def step(self, x):
        self.model(x).sum().backward()
        self.optimizer.step()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign in module.nodes(ast.Assign):
            for found in (*optimized_here(module, assign), *optimized_by_class(module, assign)):
                yield self._reported(module, found)

    def _reported(self, module: Module, found: Optimized) -> Finding:
        made, new = found.optimizer, found.replaced
        return self.finding(
            module,
            new,
            f"the optimizer of line {made.lineno} has the parameters of the previous "
            f"`{found.model}`: the one from `{one_line(module, new.value)}` is never trained",
            severity=None if found.surely else Severity.WARNING,
            trail=[
                (made, f"takes the parameters of `{found.model}`"),
                (new, "another model takes its name"),
            ],
        )
