from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.needs_a_device import is_needed, needs_one
from tensortrail.rules.devices.shared.calls.settled import (
    is_asked,
    settled_elsewhere,
    settled_instead,
    target_of,
)
from tensortrail.rules.shared.assignments import is_bound_in
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode


class DefaultKeptElsewhere(Rule):
    """An argument that may be None is used instead of the value stored in its place.

    ## What it does
    Looks at functions that replace None, as in `self.device = device or "cuda"`. Reports, as a
    note, a later use of the argument itself where a device or dtype is needed: `.to(device)`,
    `torch.zeros(n, device=device)` and the like.

    Not reported: a replacement that is the CPU or None, an argument that is assigned again, and a
    use under a test of the argument.

    ## Why is this bad?
    A caller that leaves the argument out passes None: `module.to(None)` moves nothing, and a
    factory makes its tensor on the default device. The rest of the object is on the device that was
    chosen.

    ## Fix safety
    Unsafe: for callers that leave the argument out, the device changes.

    ## References
    - pytorch/tnt pull request 398
    """

    code = "DEV570"
    name = "default-kept-elsewhere"
    confidence = Confidence.HIGH
    severity = Severity.NOTE
    triggers = (("device", "None"), ("dtype", "None"))

    bad = (
        Bad(
            """\
class Unit:
    def __init__(self, module, device=None):
        self.device: torch.device = device or pick()
        self.module = module.to(device)
""",
            lines=(4,),
            fixed="""\
class Unit:
    def __init__(self, module, device=None):
        self.device: torch.device = device or pick()
        self.module = module.to(self.device)
""",
        ),
        Bad(
            """\
import torch

def start(count, where=None):
    chosen = where if where is not None else torch.device("cuda")
    first = torch.zeros(count, device=chosen)
    return first + torch.ones(count, device=where)
""",
            lines=(6,),
            fixed="""\
import torch

def start(count, where=None):
    chosen = where if where is not None else torch.device("cuda")
    first = torch.zeros(count, device=chosen)
    return first + torch.ones(count, device=chosen)
""",
        ),
        Bad(
            """\
import torch

class Loader:
    def __init__(self, path, *, device=None):
        if device is None:
            self.device = pick()
        else:
            self.device = torch.device(device)
        self.weights = torch.load(path, map_location=device)
""",
            lines=(9,),
            fixed="""\
import torch

class Loader:
    def __init__(self, path, *, device=None):
        if device is None:
            self.device = pick()
        else:
            self.device = torch.device(device)
        self.weights = torch.load(path, map_location=self.device)
""",
        ),
        Bad(
            """\
import torch

class Head(torch.nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.place = device or "cuda" if torch.cuda.is_available() else "cpu"
        self.to(device)
""",
            lines=(8,),
            fixed="""\
import torch

class Head(torch.nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.place = device or "cuda" if torch.cuda.is_available() else "cpu"
        self.to(self.place)
""",
        ),
    )
    good = (
        Good(
            """\
class Unit:
    def __init__(self, module, device=None):
        self.device = device or pick()
        self.module = module.to(self.device)
        self.helper = Helper(device=device)
"""
        ),
        Good(
            """\
class Unit:
    def __init__(self, module, device=None):
        device = device or pick()
        self.device = device
        self.module = module.to(device)
"""
        ),
        Good(
            """\
class Unit:
    def __init__(self, module, device=None):
        self.device = device or module.device
        if device is not None:
            module.to(device)
"""
        ),
        Good(
            """\
import torch

def start(count, device=None):
    known = torch.device(device) if device is not None else device
    return torch.zeros(count, device=device), known
"""
        ),
        Good(
            """\
import torch

def start(count, device=None):
    chosen = device or torch.device("cpu")
    return torch.zeros(count, device=device), chosen
"""
        ),
        Good(
            """\
def attend(rows, kind, dtype=None):
    if kind.is_small():
        wide = pick()
    else:
        wide = kind
    return rows.to(kind), rows.to(wide), dtype
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for argument in parameters(function):
                yield from self._argument(module, function, argument.arg)

    def _argument(self, module: Module, function: FunctionNode, name: str) -> Iterator[Finding]:
        if not is_needed(module, function, name) or is_bound_in(module, function, name):
            return
        settled = next(settled_elsewhere(module, function, name), None)
        if settled is None:
            return
        kept = module.text(target_of(settled))
        for use in module.later(settled, ast.Name):
            if use.id == name and needs_one(module, use) and not is_asked(module, use, name):
                yield self.finding(
                    module,
                    use,
                    f"`{name}` may be None here; line {settled.lineno} stores its replacement in "
                    f"`{kept}`",
                    trail=[(settled, f"`{kept}` is set here"), (use, f"`{name}` is used")],
                    fixes=[settled_instead(module, use, kept)],
                )
