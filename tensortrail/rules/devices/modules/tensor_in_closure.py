from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.devices.shared.modules.closures import kept_by_functions
from tensortrail.rules.shared.given_devices import is_given_device, under_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_self, receiver, root_of
from tensortrail.rules.shared.sentences import one_line

_FACTORIES = tuple(f"torch.{each}" for each in "zeros ones full rand randn linspace eye".split())
_OF_A_PARAMETER = frozenset({"detach", "clone"})


class TensorInClosure(Rule):
    """A module keeps a tensor inside a function, where `.to()` does not reach it.

    ## What it does
    Reports `self.shift = lambda x: x - mean` in an `nn.Module`, and the same with a nested function
    or `functools.partial`, if `mean` is

    - a buffer of the module (`mean = self.mean`), or values of a parameter
      (`self.weight.detach()`);
    - a tensor that was made there without a device.

    Not reported: parameters, which `.to()` changes in place, and tensors without dimensions.

    ## Why is this bad?
    `.to(device)` gives the module other buffers. The function goes on with the old one: on a GPU it
    raises "Expected all tensors to be on the same device", on the CPU it does not see what a load
    or an update writes into the new one.

    ## Fix safety
    No fix is offered: the function should read `self.mean`, or the tensor be a buffer.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV653"
    name = "tensor-in-closure"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (
        ("lambda", "self.", "class ", "torch"),
        ("partial(", "self.", "class ", "torch"),
        ("return ", "self.", "register_buffer", "class "),
    )

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))
        mean = self.mean
        self.shift = lambda x: x - mean

    def forward(self, x):
        return self.layer(self.shift(x))
""",
            lines=(10,),
            instead="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("mean", torch.zeros(4))
        self.shift = lambda x: x - self.mean

    def forward(self, x):
        return self.layer(self.shift(x))
""",
        ),
        Bad(
            """\
from functools import partial
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.project = partial(nn.functional.linear, weight=self.embed.weight.detach())
        scales = torch.linspace(0, 1, 4)
        self.scale = lambda x: x * scales

    def forward(self, ids):
        return self.project(self.scale(self.embed(ids)))
""",
            lines=(9, 11),
        ),
    )
    good = (
        Good(
            """\
from functools import partial
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        weight = self.embed.weight
        self.project = lambda x: nn.functional.linear(x, weight)
        self.register_buffer("mean", torch.zeros(4))
        self.shift = lambda x: x - self.mean
        half = torch.tensor(0.5)
        self.half = lambda x: x * half
        ones = torch.ones(4, device=device)
        self.count = partial(torch.mul, ones)

    def forward(self, ids):
        return self.count(self.half(self.project(self.shift(self.embed(ids)))))
"""
        ),
        Good(
            """\
import torch

class Plain:
    def __init__(self):
        mean = torch.zeros(4)
        self.shift = lambda x: x - mean

    def run(self, x):
        return self.shift(x)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign, target, made in kept_by_functions(module, _is_left_behind):
            yield self.finding(
                module,
                assign,
                f"`{module.text(target)}` is a function that keeps the present tensor "
                f"`{one_line(module, made)}`: `.to()` does not move tensors inside a function",
                trail=[(made, "the tensor comes from here"), (assign, "kept by a function")],
            )


def _is_left_behind(module: Module, made: ast.expr) -> bool:
    if isinstance(made, ast.Attribute):
        return _is_buffer(module, made) or (made.attr == "data" and _is_own(module, made.value))
    if not isinstance(made, ast.Call):
        return False
    owner = receiver(made)
    if called(made) in _OF_A_PARAMETER and owner is not None and _is_own(module, owner):
        return True
    is_new = module.qualified(made.func) in _FACTORIES and bool(made.args)
    return is_new and not is_given_device(module, made) and not under_device(module, made)


def _is_buffer(module: Module, made: ast.Attribute) -> bool:
    """`self.mean`, registered by the class."""
    cls = module.class_of(made) if is_self(made.value) else None
    registered = module.calls("register_buffer", inside=cls) if cls is not None else ()
    names = (module.argument(each, 0, "name") for each in registered)
    return any(each is not None and _text(module, each) == made.attr for each in names)


def _text(module: Module, name: ast.expr) -> object:
    return name.value if isinstance(name, ast.Constant) else module.value_of(name).constant


def _is_own(module: Module, tensor: ast.expr) -> bool:
    """A parameter or buffer of the module or its layers: `self.embed.weight`."""
    if not isinstance(tensor, ast.Attribute) or not is_self(root_of(tensor)):
        return False
    return module.value_of(tensor).kind is Kind.PARAMETER or _is_buffer(module, tensor)
