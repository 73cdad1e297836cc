from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.described import described, unless
from tensortrail.rules.devices.shared.meetings.lying import out_of_place
from tensortrail.rules.devices.shared.meetings.meant import is_certain, may_be_meant
from tensortrail.rules.devices.shared.written_for.goes_along import only_sets_up
from tensortrail.rules.devices.shared.written_for.makers import outermost, users_of_objects
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_SCHEDULE = """\
import torch


class Schedule:
    def __init__(self, steps=1000):
        self.betas = torch.linspace(1e-4, 0.02, steps)
        self.products = torch.cumprod(1 - self.betas, dim=0)

    def noised(self, x, t, noise):
        a = self.products[t].view(-1, 1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise
"""
_TABLE = """\
import torch


class Table:
    def __init__(self, n, device="cpu"):
        self.rows = torch.zeros(n, 8, device=device)
        self.scale = torch.ones(8)

    def to(self, device):
        self.scale = self.scale.to(device)
        return self
"""


class ObjectLeftBehind(Rule):
    """An object of a plain class keeps tensors on the CPU, and they meet tensors on a GPU.

    ## What it does
    Looks at objects whose class is in another file of the project and is not a module. Reports the
    line that makes the object, if

    - the class makes a tensor without a device while it is set up, and keeps it; and
    - here or in a method of the object, an operation combines this tensor with one that was put on
      a device, or that is on the device of a module.

    If the class is in the same file, DEV521 reports the line that makes the tensor.

    Not reported: a class that moves the tensor itself; an object that is moved, passed to unknown
    code, or whose tensors are set from outside; and a tensor without a dimension.

    ## Why is this bad?
    The first step on a GPU raises "Expected all tensors to be on the same device", or "indices
    should be either on cpu or on the same device": `model.to(device)` does not reach the object. On
    the CPU all tests pass.

    ## Fix safety
    No fix is offered: the class may take a device, move the tensors as it uses them, or become a
    module that keeps them as buffers.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV600"
    name = "object-left-behind"
    severity = Severity.WARNING
    proven = False
    needs_callers = True
    triggers = (("import", "cuda"), ("import", "device"), ("import", "forward"), ("import", ".to("))
    bad = (
        Bad(
            """\
import torch

from schedule import Schedule


def train(model, batches):
    device = torch.device("cuda")
    model = model.to(device)
    schedule = Schedule()
    for x in batches:
        x = x.to(device)
        t = torch.randint(0, 1000, (x.shape[0],), device=device)
        noise = torch.randn_like(x)
        loss = (model(schedule.noised(x, t, noise), t) - noise).pow(2).mean()
        loss.backward()
""",
            lines=(9,),
            files={"schedule.py": _SCHEDULE},
            instead="""\
import torch

from schedule import Schedule


def train(model, batches):
    device = torch.device("cuda")
    model = model.to(device)
    with device:
        schedule = Schedule()
    for x in batches:
        x = x.to(device)
        t = torch.randint(0, 1000, (x.shape[0],), device=device)
        noise = torch.randn_like(x)
        loss = (model(schedule.noised(x, t, noise), t) - noise).pow(2).mean()
        loss.backward()
""",
        ),
        Bad(
            """\
from torch import nn

from schedule import Schedule


class Denoiser(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Linear(n, n)
        self.schedule = Schedule()

    def forward(self, x):
        return self.net(x) * self.schedule.products
""",
            lines=(10,),
            files={"schedule.py": _SCHEDULE},
        ),
    )
    good = (
        Good(
            """\
import torch

from schedule import Schedule


def sampled(model, x):
    device = torch.device("cuda")
    x = x.to(device)
    schedule = Schedule()
    schedule.products = schedule.products.to(device)
    return x * schedule.products


def prepared(prepare, x, device):
    schedule = Schedule()
    prepare(schedule)
    return x.to(device) * schedule.betas


def moved_on_the_way(x, device):
    schedule = Schedule()
    return x.to(device) * schedule.betas.to(device)
""",
            files={"schedule.py": _SCHEDULE},
        ),
        Good(
            """\
import torch

from tables import Table


def scaled(x, device):
    table = Table(3, device=device)
    table.to(device)
    return x.to(device) * table.rows * table.scale
""",
            files={"tables.py": _TABLE},
        ),
        Good(
            """\
from schedule import Schedule


def on_the_cpu(x):
    schedule = Schedule()
    return x * schedule.betas
""",
            files={"schedule.py": _SCHEDULE},
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        for function in dict.fromkeys(_users_of_foreign_objects(module)):
            if only_sets_up(module, function):
                continue
            for meeting in module.places(function).meetings:
                inner = module.function_of(meeting.node) or function
                found = out_of_place(module, inner, meeting, Where.KEPT)
                if found is not None and found[0].by is not None and found[0].by not in reported:
                    reported.add(found[0].by)
                    yield self._reported(module, inner, meeting, *found)

    def _reported(
        self, module: Module, function: FunctionNode, meeting: Meeting, kept: Place, there: Place
    ) -> Finding:
        assert kept.by is not None
        severity = Severity.ERROR if there.where is Where.LITERAL else None
        certain = is_certain(module, function, there)
        elsewhere = module.gpu_made_default()
        if may_be_meant(module, function, meeting, there) or not certain or elsewhere is not None:
            severity = Severity.NOTE
        line = getattr(meeting.node, "lineno", 0)
        return self.finding(
            module,
            kept.by,
            f"`{one_line(module, kept.by)}` makes `{kept.subject}` on the default device and keeps "
            f"it there, and line {line} combines it with a tensor {described(there)}"
            f"{unless(elsewhere)}",
            severity=severity,
            trail=(
                (kept.by, f"makes `{kept.subject}` without a device"),
                (meeting.node, f"meets a tensor {described(there)}"),
            ),
        )


def _users_of_foreign_objects(module: Module) -> Iterator[FunctionNode]:
    """Functions that make an object of a plain class of another file, and those that find one."""
    made = [
        each
        for each in module.nodes(ast.Call)
        if not isinstance(module.parent(each), ast.Return) and _makes_foreign_object(module, each)
    ]
    yield from outermost(module, made)
    for each in made:
        yield from users_of_objects(module, each)


def _makes_foreign_object(module: Module, call: ast.Call) -> bool:
    dotted = module.qualified(call.func)
    if not dotted.rpartition(".")[2][:1].isupper() or dotted.startswith("torch."):
        return False
    facts = module.class_facts(dotted)
    if facts is None or facts.is_module or facts.is_wrapper or not facts.complete:
        return False
    return facts.file not in ("", module.path)
