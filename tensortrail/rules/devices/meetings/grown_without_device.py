from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import is_none
from tensortrail.rules.view import FunctionNode


class GrownWithoutDevice(Rule):
    """A module replaces a table by a larger one that is not on the old one's device.

    ## What it does
    Reports `self.table = torch.zeros(n)`, also through a project function, without a device, if

    - it is in a method of a module that also stores the attribute while it is set up;
    - a condition compares the size of the old table (`if n > self.table.size(0)`); and
    - the class computes with the table.

    Not reported: a table that something in the class moves, as in `self.table.to(...)`.

    ## Why is this bad?
    The first longer input raises "Expected all tensors to be on the same device", hours into a run
    or for a user: the first table moved with the module, the new one is on the CPU.

    ## Fix safety
    No fix is offered: the new table belongs on the device of the old one.

    ## References
    - OpenNMT/OpenNMT-py pull request 2514
    """

    code = "DEV624"
    name = "grown-without-device"
    severity = Severity.WARNING
    proven = False
    triggers = (("self.", ".size("), ("self.", ".shape"), ("self.", "len(self."))
    bad = (
        Bad(
            """\
import torch
from torch import nn

def table(n, width):
    return torch.outer(torch.arange(n), torch.ones(width))

class Rotary(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.register_buffer("angles", table(512, width))

    def forward(self, x):
        if x.size(1) > self.angles.size(0):
            self.angles = table(x.size(1), self.width)
        return x + self.angles[: x.size(1)]
""",
            lines=(15,),
            instead="""\
import torch
from torch import nn

def table(n, width):
    return torch.outer(torch.arange(n), torch.ones(width))

class Rotary(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.register_buffer("angles", table(512, width))

    def forward(self, x):
        if x.size(1) > self.angles.size(0):
            self.angles = table(x.size(1), self.width).to(self.angles.device)
        return x + self.angles[: x.size(1)]
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.zeros(16, 16)

    def grow(self, n):
        if len(self.bias) >= n:
            return
        self.bias = torch.zeros(n, n)

    def forward(self, x):
        self.grow(x.shape[1])
        return x + self.bias
""",
            lines=(12,),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Window(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self.rows = size, None

    def forward(self, x):
        if self.rows == None:
            self.rows = torch.zeros(self.size)
        self.rows = torch.cat([self.rows[1:], x])
        return self.rows
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.zeros(16, 16)

    def forward(self, x):
        if len(self.bias) < x.shape[1]:
            self.bias = torch.zeros(x.shape[1], x.shape[1])
        return x + self.bias.to(x.device)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Biased(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.zeros(16, 16)

    def forward(self, x):
        if len(self.bias) < x.shape[1]:
            self.bias = torch.zeros(x.shape[1], x.shape[1], device=x.device)
        return x + self.bias
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = torch.zeros(16)

    def forward(self, x):
        if len(self.seen) < len(x):
            self.seen = torch.zeros(len(x))
        return x
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            cls = module.class_of(function)
            if cls is None or sets_up(function) or module.parent(function) is not cls:
                continue
            for stored, name in _stores(module, function):
                if _asks_the_old_one(module, stored, name) and _is_of_module(module, cls):
                    made = _on_the_default(module, function, stored)
                    if made is not None and _goes_along(module, cls, name, stored):
                        yield self._reported(module, stored, name, made)

    def _reported(self, module: Module, stored: ast.Assign, name: str, made: Place) -> Finding:
        return self.finding(
            module,
            stored,
            f"the new `self.{name}` is on the default device, and the old one moved with the "
            "module",
            trail=[
                (made.by or stored, "made without a device"),
                (stored, "put in the old one's place"),
            ],
        )


def _stores(module: Module, function: FunctionNode) -> Iterator[tuple[ast.Assign, str]]:
    for each in module.nodes(ast.Assign, function):
        target = each.targets[0]
        if isinstance(target, ast.Attribute) and module.text(target.value) == "self":
            yield each, target.attr


def _asks_the_old_one(module: Module, stored: ast.Assign, name: str) -> bool:
    """Under a comparison of the size of what is replaced, or of a name for that size."""
    for guard in module.guards_of(stored):
        test = guard.test
        if isinstance(test, ast.Compare) and not isinstance(test.ops[0], (ast.Is, ast.IsNot)):
            sides = [test.left, *test.comparators]
            if any(is_none(each) for each in sides):
                continue  # there is no old one
            named = [e for each in sides for e in module.value_of(each).origins]
            if any(_reads(each, name) for each in (*sides, *named)):
                return True
    return False


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == name for each in ast.walk(node))


def _is_of_module(module: Module, cls: ast.ClassDef) -> bool:
    facts = module.class_facts(cls)
    return facts is not None and facts.is_module


def _on_the_default(module: Module, function: FunctionNode, stored: ast.Assign) -> Place | None:
    held: Held | None = module.places(function).seen.get(stored.value)
    only = held.only if held is not None and held.what is What.TENSOR else None
    return only if only is not None and only.where is Where.DEFAULT else None


def _goes_along(module: Module, cls: ast.ClassDef, name: str, stored: ast.Assign) -> bool:
    """The class sets the attribute up, computes with it, and nothing of it is moved."""
    reads = [
        each
        for each in module.members(name, cls)
        if isinstance(each.ctx, ast.Load) and module.text(each.value) == "self"
    ]
    used = [each for each in reads if _is_computed_with(module, each)]
    return (
        _is_set_up(module, cls, name)
        and bool(used)
        and not any(_is_moved(module, each) for each in reads)
    )


def _is_set_up(module: Module, cls: ast.ClassDef, name: str) -> bool:
    for method in cls.body:
        if not isinstance(method, ast.FunctionDef) or not sets_up(method):
            continue
        stored = {each for _, each in _stores(module, method)}
        registered = module.calls("register_buffer", inside=method)
        stored |= {getattr(each.args[0], "value", "") for each in registered if each.args}
        if name in stored:
            return True
    return False


def _is_computed_with(module: Module, read: ast.Attribute) -> bool:
    """Its values are used: it is an operand, is passed on, or given back, whole or in part."""
    above = module.parent(read)
    while isinstance(above, ast.Subscript) and above.value is read:
        read, above = above, module.parent(above)  # type: ignore[assignment]
    if isinstance(above, ast.Call):
        return read in above.args and module.qualified(above.func) != "len"
    return isinstance(above, (ast.BinOp, ast.Return, ast.Assign, ast.Tuple, ast.keyword))


def _is_moved(module: Module, read: ast.AST) -> bool:
    """`self.table[...].to(x)`, or through a name: whoever reads it brings it along."""
    for up in module.ancestors(read):
        if isinstance(up, ast.Attribute) and up.attr in TO_DEVICE | {"type_as", "device"}:
            return up.attr != "device"
        if isinstance(up, ast.stmt):
            return False
    return False
