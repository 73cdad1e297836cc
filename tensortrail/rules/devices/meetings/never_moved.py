from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.never_moved import NeverMoved as Found
from tensortrail.rules.devices.shared.modules.never_moved import never_moved
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class NeverMoved(Rule):
    """A model is called with tensors that were moved to a device, and nothing moves the model.

    ## What it does
    Looks at models made at the top of a script, or kept by the constructor of a class that is not a
    module: `model = Net(8)`, `self.model = Net(8)`. Reports a model that nothing in the file moves,
    if another function or method calls it with something that was moved to a device.

    Not reported: a model that is passed to code that is not in the file or may move it, a model
    that is made with a device, and a class that moves itself.

    ## Why is this bad?
    On a GPU the first call raises "Expected all tensors to be on the same device": the parameters
    of a new module are on the default device, the CPU. If everything is on the CPU, it works.

    ## Fix safety
    No fix is offered: the optimizer may have been given the parameters before.

    ## References
    - pytorch documentation of `torch.nn.Module.to`
    """

    code = "DEV612"
    name = "never-moved"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.HIGH
    triggers = (("torch", ".to("), ("torch", ".cuda("))
    bad = (
        Bad(
            """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def forward(self, x):
        return self.out(x)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
""",
            lines=(15,),
            instead="""\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def forward(self, x):
        return self.out(x)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = Net(8).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
""",
        ),
        Bad(
            """\
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def forward(self, x):
        return self.out(x)


class Agent:
    def __init__(self, n, device):
        self.device = device
        self.policy = Net(n)

    def act(self, state):
        return self.policy(state.to(self.device)).argmax(-1)
""",
            lines=(16,),
        ),
        Bad(
            """\
from abc import ABC
from torch import nn


class Policy(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def choose(self, state):
        return self.out(state).argmax(-1)


class Base(ABC):
    def __init__(self, device):
        self.device = device


class Agent(Base):
    def __init__(self, n, device):
        super().__init__(device)
        self.policy = Policy(n)

    def chosen(self, state):
        return self.policy.choose(state).item()

    def act(self, state):
        return self.chosen(state.to(self.device))
""",
            lines=(22,),
        ),
    )
    good = (
        Good(
            """\
from torch import nn


class Policy(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def choose(self, state):
        return self.out(state).argmax(-1)


class Base:
    def __init__(self, device):
        self.device = device

    def start(self):
        self.policy.to(self.device)


class Agent(Base):
    def __init__(self, n, device):
        super().__init__(device)
        self.policy = Policy(n)

    def chosen(self, state):
        return self.policy.choose(state).item()

    def act(self, state):
        return self.chosen(state.to(self.device))
"""
        ),
        Good(
            """\
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def forward(self, x):
        return self.out(x)


class Agent:
    def __init__(self, n, device):
        self.device = device
        self.policy = Net(n)

    def start(self):
        self.policy.to(self.device)

    def act(self, state):
        return self.policy(state.to(self.device)).argmax(-1)
"""
        ),
        Good(
            """\
from accelerate import Accelerator
from torch import nn


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def forward(self, x):
        return self.out(x)


accelerator = Accelerator()
model = accelerator.prepare(Net(8))


def act(state):
    return model(state.to(accelerator.device)).argmax(-1)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if not in_tests(module):
            for each in never_moved(module):
                yield self._reported(module, each)

    def _reported(self, module: Module, found: Found) -> Finding:
        elsewhere = module.gpu_made_default()
        return self.finding(
            module,
            found.made.value,
            f"nothing in this file moves `{found.name}`: line {found.use.lineno} calls it with "
            f"something that was moved to `{one_line(module, found.device)}`",
            severity=Severity.NOTE if elsewhere is not None else None,
            trail=(
                (found.made, "made on the default device"),
                (found.use, "called with something that was moved"),
            ),
        )
