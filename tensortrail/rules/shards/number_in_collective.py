from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.collectives import (
    OF_TORCH,
    collectives,
    through_helpers,
)
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_before
from tensortrail.rules.shared.sentences import one_line

_NUMBERS = frozenset("int float len round time.time".split())


class NumberInCollective(Rule):
    """A Python number is passed to a collective operation, which takes only tensors.

    ## What it does
    Reports `torch.distributed.all_reduce(total)` and its siblings, `accelerator.gather(total)` and
    functions of the project that pass their argument on to one of these, if `total` is a number: a
    sum of `loss.item()`, a length, the result of `float(...)`.

    Not reported: numbers that may be tensors on some path.

    ## Why is this bad?
    The call raises a TypeError that asks for a torch.Tensor. With one process the code around it
    is often skipped, so that the first run on several GPUs shows it, at the end of an epoch.

    ## Fix safety
    No fix is offered: make a tensor of the number on the device of the process group,
    `torch.tensor(total, device=device)`, or sum tensors and call `.item()` after the reduction.

    ## References
    - KellerJordan/modded-nanogpt, commit 01a9f7654a
    - pytorch documentation of `torch.distributed.all_reduce`
    """

    code = "SHD468"
    name = "number-in-collective"
    severity = Severity.ERROR
    proven = False
    triggers = (
        *(("distributed", f"{name}(") for name in OF_TORCH),
        ("accelerator", "gather("),
        ("accelerator", "reduce("),
    )

    bad = (
        Bad(
            """\
import torch.distributed as dist

def validate(model, batches):
    total = 0.0
    for x, y in batches:
        total += model(x, y).item()
    dist.all_reduce(total)
    return total / len(batches)
""",
            lines=(7,),
            instead="""\
import torch
import torch.distributed as dist

def validate(model, batches):
    total = 0.0
    for x, y in batches:
        total += model(x, y).item()
    total = torch.tensor(total, device="cuda")
    dist.all_reduce(total)
    return total / len(batches)
""",
        ),
        Bad(
            """\
import torch.distributed as dist

def mean_over_ranks(value):
    dist.all_reduce(value, op=dist.ReduceOp.SUM)
    return value / dist.get_world_size()

def report(losses):
    count = len(losses)
    return mean_over_ranks(float(sum(losses))), mean_over_ranks(count)
""",
            lines=(9,),
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def validate(model, batches):
    total = torch.zeros(1, device="cuda")
    seen = 0
    for x, y in batches:
        total += model(x, y).detach()
        seen += len(x)
    dist.all_reduce(total)
    sizes = [None] * dist.get_world_size()
    dist.all_gather_object(sizes, seen)
    return total.item() / sum(sizes)

def reduced(value, device):
    value = value.item()
    value = torch.tensor(value, device=device)
    dist.all_reduce(value)
    return value
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call, passed in (*collectives(module), *through_helpers(module)):
            if passed is not None and _is_number(module, passed):
                yield self.finding(
                    module,
                    call,
                    f"`{one_line(module, passed)}` is a Python number, and the processes can "
                    "exchange only tensors here",
                )


def _is_number(module: Module, node: ast.expr, depth: int = 3) -> bool:
    """It is one wherever it comes from."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case ast.Call():
            return called(node) == "item" or module.qualified(node.func) in _NUMBERS
        case ast.BinOp(left=left, right=right) if depth:
            return all(_is_number(module, each, depth - 1) for each in (left, right))
        case ast.Name(id=name) if depth:
            return _is_bound_to_numbers(module, node, name, depth - 1)
    return False


def _is_bound_to_numbers(module: Module, node: ast.Name, name: str, depth: int) -> bool:
    """By every statement of the function, and the function does not take it."""
    function = module.function_of(node)
    if function is not None and name in parameter_names(function):
        return False
    uses = module.uses(name, function or module.top)
    stores = [module.statement_of(each) for each in uses if isinstance(each.ctx, ast.Store)]
    given = [_given(each, name) for each in _reaching(module, stores, node)]
    return bool(given) and all(
        each is not None and _is_number(module, each, depth) for each in given
    )


def _reaching(module: Module, stores: list[ast.stmt], node: ast.Name) -> list[ast.stmt]:
    """Those since the name was set anew on every way here; all of them, if it may be set later."""
    around = set(module.ancestors(node))
    before = [each for each in stores if each not in around and is_before(each, node)]
    for index, each in reversed(list(enumerate(before))):
        if isinstance(each, ast.Assign) and around.issuperset(module.ancestors(each)):
            return before[index:]
    return stores


def _given(statement: ast.stmt, name: str) -> ast.expr | None:
    """What the statement binds the name to, or adds to it."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=bound)], value=value) if bound == name:
            return value
        case ast.AugAssign(target=ast.Name(id=bound), value=value) if bound == name:
            return value
    return None
