from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Near, Rule
from tensortrail.rules.devices.shared.modules.closures import kept_by_functions
from tensortrail.rules.devices.shared.modules.stateless import WITHOUT_WEIGHTS, is_stateless
from tensortrail.rules.shared.in_tests import in_tests

_NAMED = re.compile(rb"[^\n]*return[ \t]+\w+[ \t]*(?:#[^\n]*)?(?:\r?\n|$)")


class ModuleInClosure(Rule):
    """A module keeps a layer inside a function, where torch does not look for layers.

    ## What it does
    Reports `self.block = lambda x: x + layer(x)` in an `nn.Module`, if `layer` is a module with
    parameters that is made there, and

    - the same with a nested function or `functools.partial`;
    - the result of a function of the file that makes a layer and returns a function that uses it.

    Not reported: a layer that is an attribute of the module as well.

    ## Why is this bad?
    The layer stays on the CPU when the model is moved, the optimizer does not train it, and
    `state_dict()` does not save it: a module finds others only in its attributes.

    ## Fix safety
    No fix is offered: a class with a `forward`, or `nn.Sequential`, should take the place of the
    function. Checkpoints written before lack these weights.

    ## References
    - pytorch documentation of `torch.nn.Module`
    """

    code = "DEV641"
    name = "module-in-closure"
    severity = Severity.ERROR
    proven = False
    needs_callers = True
    triggers = (
        ("lambda", "self.", "class ", "torch"),
        ("partial(", "self.", "class ", "torch"),
        Near("return ", _NAMED, ("self.", "class ", "torch")),
    )

    bad = (
        Bad(
            """\
from torch import nn

def residual(n):
    layer = nn.Linear(n, n)
    return lambda x: x + layer(x)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inp = nn.Linear(4, n)
        self.block = residual(n)

    def forward(self, x):
        return self.block(self.inp(x))
""",
            lines=(11,),
            instead="""\
from torch import nn

class Residual(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = nn.Linear(n, n)

    def forward(self, x):
        return x + self.layer(x)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inp = nn.Linear(4, n)
        self.block = Residual(n)

    def forward(self, x):
        return self.block(self.inp(x))
""",
        ),
        Bad(
            """\
from functools import partial
from torch import nn

def gated(gate, x):
    return x * gate(x).sigmoid()

def with_skip(layer):
    def run(x):
        return x + layer(x)
    return run

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.gate = partial(gated, nn.Linear(n, n))
        self.skip = with_skip(nn.Conv1d(n, n, 1))

    def forward(self, x):
        return self.skip(self.gate(x))
""",
            lines=(15, 16),
        ),
        Bad(
            """\
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        norm = nn.LayerNorm(n)
        self.act = lambda x: norm(x).relu()

    def forward(self, x):
        return self.act(x)
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
from functools import partial
from torch import nn

def residual(layer):
    return lambda x: x + layer(x)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = nn.Linear(n, n)
        self.block = residual(self.layer)
        norm = nn.LayerNorm(n)
        self.norm = norm
        self.act = lambda x: norm(x).relu()
        make = nn.Linear
        self.make = partial(make, n)
        relu = nn.ReLU()
        self.relu = lambda x: relu(x) + n

    def forward(self, x):
        return self.relu(self.act(self.block(x)))
"""
        ),
        Good(
            """\
from torch import nn

class Trainer:
    def __init__(self, n):
        net = nn.Linear(n, n).cuda()
        self.run = lambda x: net(x)

    def step(self, x):
        return self.run(x)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign, target, made in kept_by_functions(module, _has_weights):
            if isinstance(made, ast.Call):
                yield self._found(module, assign, target, made)

    def _found(
        self, module: Module, assign: ast.Assign, target: ast.Attribute, made: ast.Call
    ) -> Finding:
        return self.finding(
            module,
            assign,
            f"`{module.text(target)}` is a function, and torch does not look for modules in "
            f"functions: `.to()` does not move the `{module.text(made.func)}` it uses, no "
            "optimizer trains it, and it is not saved",
            trail=[(made, "the module is made here"), (assign, "only a function keeps it")],
        )


def _has_weights(module: Module, made: ast.expr) -> bool:
    """A call that makes a module with parameters."""
    if not isinstance(made, ast.Call):
        return False
    owner, _, last = module.qualified(made.func).rpartition(".")
    if owner.startswith("torch.nn") and "functional" not in owner:
        empty = last == "Sequential" and not made.args
        return last[:1].isupper() and not empty and not WITHOUT_WEIGHTS.search(last)
    value = module.value_of(made)
    facts = module.class_facts(value.cls) if value.kind is Kind.MODULE and value.cls else None
    if facts is None or not facts.fields or WITHOUT_WEIGHTS.search(value.cls.rpartition(".")[2]):
        return False
    return module.about(value.cls, is_stateless) is not True
