from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Near, Rule
from tensortrail.rules.devices.shared.modules.container_reads import is_reached
from tensortrail.rules.devices.shared.modules.known_otherwise import (
    follows_its_input,
    is_registered,
    knows_where_they_lie,
)
from tensortrail.rules.devices.shared.modules.plain_containers import is_a_metric, kept_containers
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.shared.given_weights import takes_its_weights
from tensortrail.rules.shared.in_tests import in_tests

_BOUND = pattern(rb"[^\n#]*?\bself\.\w+[ \t]*(?::[^=\n]*)?=[ \t\\\r\n(]*(?:[\[{(]|\S+,)")
"""A container, or several values."""


class ModulesInPlainContainer(Rule):
    """A module keeps other modules in a list, tuple or dict, which torch does not search.

    ## What it does
    Reports `self.layers = [nn.Linear(n, n) for _ in range(3)]`, a tuple or dict of this kind, and
    `self.layers.append(nn.Linear(n, n))`, if the modules have parameters or buffers and another
    method uses the container. Metrics of torchmetrics are such modules too.

    Reported as a note: a class that moves the modules or their inputs itself; modules that move
    what they hold to their input, or take all weights from outside; and code that exports or
    converts.

    Not reported: modules that were made elsewhere and then put into a list. That is a usual way to
    hide them on purpose.

    ## Why is this bad?
    The modules stay on the CPU when the model is moved, the optimizer does not train them, and
    `state_dict()` does not save them: a module finds others only in its attributes.

    ## Fix safety
    Unsafe: `nn.ModuleList` is put around the list. Checkpoints written before lack these weights,
    and a `ModuleList` does not have all methods of a list.

    ## References
    - pytorch documentation, `torch.nn.ModuleList`
    """

    code = "DEV544"
    name = "modules-in-plain-container"
    severity = Severity.ERROR
    errors_as = Severity.WARNING
    needs_callers = True
    triggers = (Near("self.", _BOUND, ("torch", "class ")),)

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = [nn.Linear(n, n) for _ in range(3)]
        self.heads = {"a": nn.Linear(n, 1)}

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.heads["a"](x)
""",
            lines=(7, 8),
            fixed="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(n, n) for _ in range(3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(n, 1)})

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.heads["a"](x)
""",
        ),
        Bad(
            """\
from torch import nn

class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.blocks = []
        for _ in range(4):
            self.blocks.append(Block(n))

    def forward(self, x):
        return self.blocks[0](x)
""",
            lines=(13,),
        ),
        Bad(
            """\
from torch import nn


class Scored(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.losses = []
        for each in weights:
            self.losses.append(nn.CrossEntropyLoss(weight=each))

    def forward(self, x, y):
        return self.losses[0](x, y)
""",
            lines=(9,),
        ),
    )
    good = (
        Good(
            """\
from torch import nn

class Net(nn.Module):
    def __init__(self, n, teacher):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(n, n)])
        self.teacher = [teacher]
        self.acts = [nn.ReLU(), nn.GELU()]
        self.parts = [nn.Linear(n, n)]
        self.net = nn.Sequential(*self.parts)
        self.heads = []
        for index in range(2):
            head = nn.Linear(n, 1)
            self.add_module(f"head{index}", head)
            self.heads.append(head)

    def forward(self, x):
        x = self.net(self.layers[0](x)) - self.teacher[0](x)
        return self.acts[0](self.heads[0](x))
"""
        ),
        Good(
            """\
from torch import nn

class Zoo:
    def __init__(self, n):
        self.nets = [nn.Linear(n, n)]

    def run(self, x):
        return self.nets[0](x)
"""
        ),
        Good(
            """\
from torch import nn

class Smoothed(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.left = (size - 1) // 2
        self.mean = nn.AvgPool1d(int(size), stride=1)

    def forward(self, x):
        return self.mean(nn.functional.pad(x, (self.left, self.left)))

class Trends(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.smoothed = [Smoothed(each) for each in sizes]

    def forward(self, x):
        return sum(each(x) for each in self.smoothed)
"""
        ),
        Good(
            "from torch import nn\n\nclass Heads(nn.Module):\n    def __init__(self, sizes):\n"
            "        super().__init__()\n        self.heads = []\n"
            "        self.heads = nn.ModuleList()\n        for size in sizes:\n"
            "            self.heads.append(nn.Linear(size, 1))\n\n"
            "    def forward(self, x):\n        return self.heads[0](x)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            facts = module.class_facts(cls)
            if facts is None or not facts.is_module:
                continue
            for name, holder, made in kept_containers(module, cls):
                if is_reached(module, cls, name, holder, made) and not is_registered(
                    module, cls, name, holder
                ):
                    yield self._reported(module, name, holder, made)

    def _reported(self, module: Module, name: str, holder: ast.expr, made: ast.Call) -> Finding:
        harmless = knows_where_they_lie(module, holder, name) or is_beforehand(module, holder)
        harmless = (
            harmless
            or follows_its_input(module, made)
            or takes_its_weights(module, module.text(made.func))
        )
        lost = (
            "and its state is" if is_a_metric(module, made) else "no optimizer trains it, and it is"
        )
        return self.finding(
            module,
            holder,
            f"`self.{name}` is a plain container: `.to()` does not move the "
            f"`{module.text(made.func)}` in it, {lost} not saved",
            trail=[(made, "the module is made here")],
            severity=Severity.NOTE if harmless else None,
            fixes=[_wrapped(module, holder, made)],
        )


def _wrapped(module: Module, holder: ast.expr, made: ast.Call) -> Fix | None:
    shown, _, last = module.text(made.func).rpartition(".")
    if module.qualified(made.func) != f"torch.nn.{last}" or not shown:
        return None
    if last == "Parameter":
        return None
    container = "ModuleDict" if isinstance(holder, (ast.Dict, ast.DictComp)) else "ModuleList"
    if isinstance(holder, ast.Call):
        return None
    edit = module.replace(holder, f"{shown}.{container}({module.text(holder)})")
    return module.fix(f"keep them in a `{container}`", Safety.UNSAFE, edit)
