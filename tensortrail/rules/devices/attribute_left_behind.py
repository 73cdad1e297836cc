from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._lying import (
    FACTORIES,
    certainly,
    described,
    follows,
    is_legal,
    made_without_device,
    makers_and_callers,
    sets_up,
)
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode


class AttributeLeftBehind(Rule):
    """A module keeps a tensor as a plain attribute and computes with it after it has moved.

    ## What it does
    Reports an operation of a module that takes a tensor from a plain attribute, made without a
    device while the module was set up, together with a parameter, a buffer, an argument of
    `forward` or a tensor that was put on a device.

    Nothing is reported if the attribute is set again elsewhere, if `to` or `_apply` of the class
    takes it along, if it is moved on the way to the operation, or if it has no dimension.

    ## Why is this bad?
    `module.to(device)` moves parameters, buffers and submodules, and nothing else. The tensor
    stays on the CPU, and the first call on a GPU stops.

    ## Fix safety
    No fix is offered: a buffer can be saved with the module or not (`persistent`), and both
    change what others see.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV525"
    name = "attribute-left-behind"
    since = "0.2.0"
    severity = Severity.WARNING
    explains = ("DEV530",)
    triggers = tuple(("torch", "self.", name) for name in FACTORIES)
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n\n"
            "    def forward(self, x):\n        return x * self.weights\n",
            lines=(8,),
            instead="""\
import torch
from torch import nn


class Weighted(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("weights", torch.linspace(0, 1, n), persistent=False)

    def forward(self, x):
        return x * self.weights
""",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\ndef filter_of(n):\n"
            "    return torch.hann_window(n) * torch.arange(n)\n\n\n"
            "class Smooth(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        taps = filter_of(n)\n        self.taps = taps.view(1, 1, n)\n\n"
            "    def forward(self, x):\n"
            "        return nn.functional.conv1d(x, self.taps.expand(2, -1, -1))\n",
            lines=(13,),
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n"
            "        self.scale = torch.tensor(2.0)\n\n"
            "    def forward(self, x):\n"
            "        return x * self.weights.to(x.device) * self.scale\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n\n"
            "    def _apply(self, fn, recurse=True):\n"
            "        self.weights = fn(self.weights)\n"
            "        return super()._apply(fn, recurse)\n\n"
            "    def forward(self, x):\n        return x * self.weights\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n\n"
            "    def forward(self, x):\n"
            "        if self.weights.device != x.device:\n"
            "            self.weights = self.weights.to(x.device)\n"
            "        return x * self.weights\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[tuple[ast.AST | None, str]] = set()
        for function in dict.fromkeys(_users_of_made_attributes(module)):
            for meeting in module.places(function).meetings:
                inner = module.function_of(meeting.node) or function
                found = _left_behind(module, inner, meeting)
                if found is None or (found[0].by, found[0].subject) in reported:
                    continue
                reported.add((found[0].by, found[0].subject))
                yield self._reported(module, function, meeting, *found)

    def _reported(
        self, module: Module, function: FunctionNode, meeting: Meeting, kept: Place, there: Place
    ) -> Finding:
        node = _kept_at(module, function, kept)
        line = getattr(meeting.node, "lineno", 0)
        return self.finding(
            module,
            node or meeting.node,
            f"`self.{kept.subject}` is a plain attribute that `.to()` does not move, and line "
            f"{line} takes it together with a tensor {described(there)}",
            trail=(
                (node, "kept as a plain attribute, on the default device"),
                (meeting.node, f"meets a tensor {described(there)}"),
            ),
        )


def _users_of_made_attributes(module: Module) -> Iterator[FunctionNode]:
    """Methods of modules that read an attribute which was made without a device."""
    for function in makers_and_callers(module, made_without_device(module)):
        cls = module.parent(function)
        if not isinstance(cls, ast.ClassDef) or not sets_up(function):
            continue
        facts = module.class_facts(cls)
        if facts is None or not facts.is_module:
            continue
        names = set(_kept(module, function))
        for each in cls.body if names else ():
            if isinstance(each, ast.FunctionDef) and not sets_up(each):
                read = {node.attr for node in module.nodes(ast.Attribute, each)}
                if read & names:
                    yield each


def _kept(module: Module, function: FunctionNode) -> Iterator[str]:
    """Names of the tensors on the default device that the function stores in `self`."""
    for node, held in module.places(function).seen.items():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield from {node.attr for each in held.places if each.where is Where.DEFAULT}


def _left_behind(
    module: Module, function: FunctionNode, meeting: Meeting
) -> tuple[Place, Place] | None:
    for odd, other in meeting.pairs:
        kept = certainly(odd, function, Where.STAYS)
        if kept is None or kept.given or is_legal(meeting, odd):
            continue
        there = follows(module, function, other)
        if there is not None:
            return kept, there
    return None


def _kept_at(module: Module, function: FunctionNode, kept: Place) -> ast.AST | None:
    """The assignment of the attribute in the class around the function."""
    cls = module.class_of(function)
    for node in module.nodes(ast.Attribute, cls) if cls is not None else ():
        if node.attr == kept.subject and isinstance(node.ctx, ast.Store):
            return module.statement_of(node)
    return None
