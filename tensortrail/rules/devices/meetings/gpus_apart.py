from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import certainly, excluded
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.modules.inputs_moved import may_have_moved
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_BRANCHES = (ast.If, ast.IfExp, ast.Match, ast.Try, ast.BoolOp)
_NUMBERED = re.compile(r"cuda:(\d+)")


class GpusApart(Rule):
    """An operation uses tensors that the code puts on two different GPUs.

    ## What it does
    Follows tensors as DEV521 does. Reports an operation on two tensors, if the code puts one on a
    GPU with a number, such as `"cuda:1"`, and the other on a GPU with another number or on the
    current one (`.cuda()`, `"cuda"`), on every path to it.

    Not reported: the current GPU, if some file of the project chooses it with
    `torch.cuda.set_device`, and calls of modules in a file whose hooks move their inputs.

    ## Why is this bad?
    The operation raises "Expected all tensors to be on the same device": the current GPU is the
    first one. On a machine with one GPU the line before raises.

    ## Fix safety
    No fix is offered: either of the two may be in the wrong place.

    ## References
    - pytorch documentation, "CUDA semantics": the current device
    """

    code = "DEV644"
    name = "gpus-apart"
    severity = Severity.ERROR
    proven = False
    confidence = Confidence.MEDIUM
    triggers = ("cuda:",)
    bad = (
        Bad(
            """\
import torch
from torch import nn

def loss(x: torch.Tensor, y: torch.Tensor):
    device = torch.device("cuda:1")
    net = nn.Linear(4, 3).to(device)
    scores = net(x.to(device))
    return nn.functional.cross_entropy(scores, y.cuda())
""",
            lines=(8,),
            instead="""\
import torch
from torch import nn

def loss(x: torch.Tensor, y: torch.Tensor):
    device = torch.device("cuda:1")
    net = nn.Linear(4, 3).to(device)
    scores = net(x.to(device))
    return nn.functional.cross_entropy(scores, y.to(device))
""",
        ),
        Bad(
            """\
import torch

def halves(x: torch.Tensor, y: torch.Tensor):
    left = x.to("cuda:0")
    right = y.to("cuda:1")
    return torch.cat([left, right])
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
import torch

def halves(x: torch.Tensor, y: torch.Tensor, second: bool):
    left = x.to("cuda:0")
    right = y.to("cuda:1")
    right = right.to("cuda:0")
    if second:
        left = left.to("cuda:1")
        right = right.to("cuda:1")
    return torch.cat([left, right])

def first(x: torch.Tensor, y: torch.Tensor):
    return x.to("cuda:0") + y.cuda()
"""
        ),
        Good(
            """\
import torch

def run(x: torch.Tensor, y: torch.Tensor):
    torch.cuda.set_device(1)
    return x.to("cuda:1") + y.cuda()
"""
        ),
        Good(
            """\
from torch import nn

def run(x):
    first, second = nn.Linear(4, 4).to("cuda:0"), nn.Linear(4, 4).to("cuda:1")
    second.register_forward_pre_hook(lambda layer, given: (given[0].to("cuda:1"),))
    return second(first(x.to("cuda:0")))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        named = [e for e in module.nodes(ast.Constant) if _NUMBERED.search(str(e.value))]
        for function in outermost(module, named):
            reported: set[ast.AST] = set()
            for meeting in module.places(function).meetings:
                if may_have_moved(module, meeting):
                    continue
                inner = module.function_of(meeting.node) or function
                found = _apart(module, inner, meeting)
                if found is not None and meeting.node not in reported:
                    reported.add(meeting.node)
                    yield self._reported(module, meeting, *found)

    def _reported(self, module: Module, meeting: Meeting, one: Place, other: Place) -> Finding:
        here, there = _number(module, one), _number(module, other)
        return self.finding(
            module,
            meeting.node,
            f"`{one_line(module, meeting.node)}` uses a tensor on GPU {here} together with one on "
            f"GPU {there}",
            trail=[
                (one.by, f"put on GPU {here}"),
                (other.by, f"put on GPU {there}"),
                (meeting.node, "used together"),
            ],
        )


def _apart(module: Module, function: FunctionNode, meeting: Meeting) -> tuple[Place, Place] | None:
    for here, there in meeting.pairs:
        one = certainly(here, function, Where.LITERAL)
        other = certainly(there, function, Where.LITERAL)
        if one is None or other is None or is_legal(meeting, here) or is_legal(meeting, there):
            continue
        if excluded(meeting, one) or excluded(meeting, other):
            continue
        numbers = _number(module, one), _number(module, other)
        if None not in numbers and numbers[0] != numbers[1]:
            return one, other
    return None


def _number(module: Module, place: Place) -> int | None:
    """Which GPU the code names on every path; None if it may be any, or no GPU."""
    by = place.by
    if place.subject != "cuda" or by is None or place.given or _depends(module, by):
        return None
    written = list(_written(module, by))
    for each in written:
        found = _NUMBERED.search(each) if isinstance(each, str) else None
        if found is not None:
            return int(found.group(1))
    if isinstance(by, ast.Call) and called(by) == "cuda" and by.args:
        said = module.value_of(by.args[0]).constant
        return said if isinstance(said, int) and not isinstance(said, bool) else None
    is_current = "cuda" in written or (isinstance(by, ast.Call) and called(by) == "cuda")
    chosen = module.sets_current_gpu() or any(module.contexts_of(by))
    return 0 if is_current and not chosen else None


def _depends(module: Module, by: ast.AST) -> bool:
    """It stands in a branch: another path may lead to another GPU."""
    branches = (up for up in module.ancestors(by) if isinstance(up, _BRANCHES))
    return any("__name__" not in module.text(getattr(up, "test", up)) for up in branches)


def _written(module: Module, by: ast.AST) -> Iterator[object]:
    """The constants in a call, and in what the one value of its device is."""
    said = [by]
    if isinstance(by, ast.Call):
        devices = [*by.args, *(each.value for each in by.keywords if each.arg == "device")]
        said += [behind(module, each) for each in devices if isinstance(each, ast.Name)]
    for each in said:
        yield from (node.value for node in ast.walk(each) if isinstance(node, ast.Constant))
