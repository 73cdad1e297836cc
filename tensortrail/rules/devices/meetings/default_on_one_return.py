from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.answers_on_given import returned_on_given_device
from tensortrail.rules.devices.shared.meetings.described import described
from tensortrail.rules.devices.shared.meetings.device_written import made_there
from tensortrail.rules.devices.shared.meetings.given_back import (
    by_position,
    has_none_of,
    is_chosen,
    on_one_path,
    on_the_default,
    only_raises,
    where_others_are,
)
from tensortrail.rules.devices.shared.meetings.meant import names_a_device
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import (
    FACTORIES,
    made_without_device,
    outermost,
)
from tensortrail.rules.places import FunctionPlaces, Held, Place
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.placeholders import is_placeholder
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_ONE = "|".join(FACTORIES)


class DefaultOnOneReturn(Rule):
    """One `return` of a function gives a tensor on the default device, and another does not.

    ## What it does
    Compares the `return` statements of a function. Reports a tensor that was made without a device
    and is returned as it is, if another `return` gives a tensor that is on the device of an
    argument, of the module, or on a device that was passed, or is a call that is given a device.

    Reported as a note: functions that name no device; and a tensor without a dimension. Such a
    tensor can be combined with any other, but not in `torch.stack`, `torch.cat` or a collective
    operation.

    Not reported: a `return` under a condition about devices or about the type of an argument, and
    one where the tensor of the other `return` is None or an empty list.

    Notes are off by default, unless the tensor has a dimension and the code is not for the CPU.

    ## Why is this bad?
    On a GPU, the caller gets a CPU tensor on the rare path, such as an empty batch or a missing
    label. The program then raises far from the cause, often after hours of training.

    ## Fix safety
    Unsafe: it passes the device of the other result. If several devices are at hand, another one
    may be meant.

    ## References
    - Lightning-AI/torchmetrics, the answer of metrics for empty inputs
    """

    code = "DEV531"
    name = "default-on-one-return"
    severity = Severity.WARNING
    warns = False
    notes = False
    needs_callers = True
    confidence = Confidence.MEDIUM
    explains = ("DEV532", "DEV552", "NEW305")
    triggers = tuple(("torch", name, "return") for name in FACTORIES)
    shape = (
        pattern(rb"\b(?:%s)(?:\s+as\s|\s*\((?![^()\n#'\"]*\bdevice\s*=[^=]))" % _ONE.encode()),
    )
    bad = (
        Bad(
            "import torch\n\n\ndef areas(boxes: torch.Tensor):\n    if boxes.numel() == 0:\n"
            "        return torch.zeros(0, 4)\n"
            "    scale = torch.ones(4, device=boxes.device)\n    return boxes * scale\n",
            lines=(6,),
            fixed="import torch\n\n\ndef areas(boxes: torch.Tensor):\n    if boxes.numel() == 0:\n"
            "        return torch.zeros(0, 4, device=boxes.device)\n"
            "    scale = torch.ones(4, device=boxes.device)\n    return boxes * scale\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Router(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.gate = nn.Linear(n, n)\n\n"
            "    def forward(self, x):\n        scores = self.gate(x) * 2\n"
            "        if not self.training:\n            return scores, torch.zeros(3)\n"
            "        return scores, scores.sum(0)\n",
            lines=(13,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Router(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.gate = nn.Linear(n, n)\n\n"
            "    def forward(self, x):\n        scores = self.gate(x) * 2\n"
            "        if not self.training:\n"
            "            return scores, torch.zeros(3, device=scores.device)\n"
            "        return scores, scores.sum(0)\n",
        ),
        Bad(
            "import torch\n\n\ndef mean_of(values: torch.Tensor, blank: torch.Tensor):\n"
            "    blank = torch.zeros(2, device=values.device)\n"
            "    return values.mean() + blank if len(values) > 0 else torch.tensor([0.0, 0.0])\n",
            lines=(6,),
            fixed="import torch\n\n\ndef mean_of(values: torch.Tensor, blank: torch.Tensor):\n"
            "    blank = torch.zeros(2, device=values.device)\n"
            "    return values.mean() + blank if len(values) > 0 else "
            "torch.tensor([0.0, 0.0], device=values.device)\n",
        ),
        Bad(
            """\
import torch

def blurred(x, device):
    return x.to(device).mean(0, keepdim=True)

def condition(size, **given):
    x, device = given.get("x"), given["device"]
    if x is None:
        return torch.zeros(1, size)
    return blurred(x, device)
""",
            lines=(9,),
            fixed="""\
import torch

def blurred(x, device):
    return x.to(device).mean(0, keepdim=True)

def condition(size, **given):
    x, device = given.get("x"), given["device"]
    if x is None:
        return torch.zeros(1, size, device=device)
    return blurred(x, device)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def named(x, device):
    return f"{x} on {device}"

def condition(size, **given):
    x, device = given.get("x"), given["device"]
    if x is None:
        return torch.zeros(1, size)
    return named(x, device)
"""
        ),
        Good(
            """\
import torch
from torch import nn

def positions(count, trained):
    table = torch.arange(count).float()
    if trained:
        return nn.Parameter(table)
    return table
"""
        ),
        Good(
            """\
import torch

def dropped(self, x: torch.Tensor = None, shape=None):
    if x is not None:
        return torch.ones_like(x) * self.scale
    else:
        return torch.ones(shape)
"""
        ),
        Good(
            "import torch\n\n\ndef areas(boxes: torch.Tensor):\n    if not boxes.is_cuda:\n"
            "        return torch.zeros(0, 4)\n"
            "    scale = torch.ones(4, device=boxes.device)\n    return boxes * scale\n"
        ),
        Good(
            "import torch\n\n\ndef areas(boxes: torch.Tensor):\n    if boxes.numel() == 0:\n"
            "        return torch.zeros(0, 4).to(boxes)\n"
            "    scale = torch.ones(4, device=boxes.device)\n    return boxes * scale\n"
        ),
        Good(
            "import torch\n\n\ndef table(n: int, m: int):\n    if m == 0:\n"
            "        return torch.zeros(n)\n    return torch.arange(n) * m\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for outer in outermost(module, made_without_device(module)):
            places = module.places(outer)
            for function in (outer, *module.nodes(ast.FunctionDef, outer)):
                if not sets_up(function):
                    yield from self._function(module, function, places)

    def _function(
        self, module: Module, function: FunctionNode, places: FunctionPlaces
    ) -> Iterator[Finding]:
        reported: set[ast.AST] = set()
        given = returned_on_given_device(module, function)
        for answers in by_position(module, function, places):
            other = where_others_are(module, function, answers) or given
            for node, held in answers:
                found = on_one_path(function, node, held) or on_the_default(held, other)
                if found is None or is_chosen(module, node) or found[0] in reported:
                    continue
                if only_raises(found[0]):
                    continue
                if has_none_of(module, node, found[2]):
                    continue
                if len(held.places) > 2 and is_placeholder(module, found[0]):
                    continue
                reported.add(found[0])
                yield self._reported(module, function, places, node, held, *found)

    def _reported(
        self,
        module: Module,
        function: FunctionNode,
        places: FunctionPlaces,
        node: ast.expr,
        held: Held,
        made: ast.AST,
        other: ast.AST,
        there: Place,
    ) -> Finding:
        line = getattr(other, "lineno", 0)
        before = is_beforehand(module, function)
        plain = held.may_be_scalar or not names_a_device(there) or before
        return self.finding(
            module,
            made,
            f"`{one_line(module, made)}` is on the default device, but line {line} returns a "
            f"tensor {described(there)}",
            severity=Severity.NOTE if plain else None,
            trail=(
                (made, "made without a device"),
                (node, "returned"),
                (other, "the other result"),
            ),
            fixes=(made_there(module, function, places, made, there),),
            told=not (held.may_be_scalar or before),
        )
