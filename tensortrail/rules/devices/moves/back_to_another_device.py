from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.devices_said import is_in_a_file_that_asks_tensors
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import moves_to_cpu
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_DEEPEST = 10


class _Trip(NamedTuple):
    """A tensor and the call that takes it to the CPU."""

    source: ast.expr
    away: ast.Call


class BackToAnotherDevice(Rule):
    """The result of a tensor moved to the CPU goes to the current GPU, not back to its device.

    ## What it does
    Reports, as a note, `.cuda()` and `.to("cuda")` on a value computed from `x.cpu()` or
    `x.to("cpu")`, where `x` is an argument of the function or an attribute of the object. The note
    is off by default in a file that never asks a tensor for its device.

    ## Why is this bad?
    On a machine without a GPU, the move raises. With several devices, the next operation that
    combines the result with another tensor of the caller may raise: `x` may have been on a second
    GPU, on another kind of accelerator, or on the CPU.

    ## Fix safety
    Unsafe: the result is on another device than before.

    ## References
    - Lightning-AI/torchmetrics pull request 2636
    """

    code = "DEV517"
    name = "back-to-another-device"
    since = "0.2.0"
    severity = Severity.NOTE
    notes = False
    triggers = (("cuda", "cpu"),)

    bad = (
        Bad(
            """\
def sorted_rows(x):
    return x.cpu().sort(dim=1).values.cuda()
""",
            lines=(2,),
            fixed="""\
def sorted_rows(x):
    return x.cpu().sort(dim=1).values.to(x.device)
""",
        ),
        Bad(
            """\
import torch

def filtered(signal, width):
    samples = signal.detach().cpu().numpy()
    smooth = torch.from_numpy(run(samples, width))
    return smooth.to("cuda")
""",
            lines=(6,),
            fixed="""\
import torch

def filtered(signal, width):
    samples = signal.detach().cpu().numpy()
    smooth = torch.from_numpy(run(samples, width))
    return smooth.to(signal.device)
""",
        ),
    )
    good = (
        Good("def f(x):\n    return x.cpu().sort().values.to(x.device)\n"),
        Good("def f(x):\n    x.cpu()\n    return x.cuda()\n"),
        Good(
            """\
def compared(x):
    there = x.cuda()
    back = there.cpu()
    return run(back).cuda()
"""
        ),
        Good(
            """\
def loaded(model, x, device):
    kept = x.cpu()
    return kept.to(device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for call in module.nodes(ast.Call, function):
                back = _brought(module, call) if module.function_of(call) is function else None
                trip = _trip_of(module, function, back, _DEEPEST) if back is not None else None
                if trip is not None:
                    yield self._reported(module, function, call, trip)

    def _reported(
        self, module: Module, function: FunctionNode, call: ast.Call, trip: _Trip
    ) -> Finding:
        shown = one_line(module, trip.source)
        return self.finding(
            module,
            call,
            f"`{shown}` was moved to the CPU, and its result goes to the current GPU: `{shown}` "
            "may have been on another device",
            trail=[
                (trip.away, f"`{shown}` is moved to the CPU"),
                (call, "the result goes to the GPU"),
            ],
            fixes=[_back(module, function, call, trip)],
            told=is_in_a_file_that_asks_tensors(module, call),
        )


def _brought(module: Module, call: ast.Call) -> ast.expr | None:
    """What `.cuda()` or `.to("cuda")` is asked of."""
    func = call.func
    if not isinstance(func, ast.Attribute) or module.qualified(func).startswith("torch."):
        return None
    if func.attr == "cuda" and not call.args and not call.keywords:
        return func.value
    if func.attr == "to" and call.args and is_cuda_literal(module, call.args[0]):
        return func.value
    return None


def _trip_of(module: Module, function: FunctionNode, node: ast.expr, depth: int) -> _Trip | None:
    """The way to the CPU that what stands here was made of."""
    if depth == 0:
        return None
    for each in _made_of(module, node):
        if isinstance(each, ast.Call) and moves_to_cpu(module, each):
            assert isinstance(each.func, ast.Attribute)
            source = _stripped(each.func.value)
            return _Trip(source, each) if _is_given(function, source) else None
        found = _trip_of(module, function, each, depth - 1)
        if found is not None:
            return found
    return None


def _made_of(module: Module, node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.Call(func=ast.Attribute(value=owner), args=args):
            return [node, owner, *args] if moves_to_cpu(module, node) else [owner, *args]
        case ast.Call(args=args):
            return list(args)
        case ast.Attribute(value=value) | ast.Subscript(value=value):
            return [value]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Name():
            origins = module.value_of(node).origins
            return list(origins) if len(origins) == 1 else []
    return []


def _stripped(node: ast.expr) -> ast.expr:
    """`x` of `x.detach().float()`: what is on the same device and has a name."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=inner)):
                node = inner
            case ast.Subscript(value=inner) | ast.Attribute(value=inner, attr="data" | "T"):
                node = inner
            case _:
                return node


def _is_given(function: FunctionNode, source: ast.expr) -> bool:
    """An argument, or an attribute of one or of the object."""
    root = source
    while isinstance(root, ast.Attribute):
        root = root.value
    given = function.args
    names = {each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    return isinstance(root, ast.Name) and root.id in names


def _back(module: Module, function: FunctionNode, call: ast.Call, trip: _Trip) -> Fix | None:
    """To where it was, if the name still stands for that."""
    rebound = any(
        module.text(each) == module.text(trip.source) and isinstance(each.ctx, ast.Store)
        for each in module.nodes(ast.Name, function)
    )
    func = call.func
    if rebound or not isinstance(func, ast.Attribute):
        return None
    owner = module.text(func.value)
    edit = module.replace(call, f"{owner}.to({module.text(trip.source)}.device)")
    return module.fix("move it back to where it was", Safety.UNSAFE, edit)
