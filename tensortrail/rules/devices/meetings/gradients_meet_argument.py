from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import FunctionNode

_OVER = ("parameters", "named_parameters")
_PARALLEL = ("no_sync", "FullyShardedDataParallel", "DistributedDataParallel", "fully_shard")
_IN_PLACE = ("mul_", "div_", "add_", "sub_")


class GradientsMeetArgument(Rule):
    """All gradients of a model are scaled by one tensor, whatever devices they are on.

    ## What it does
    Reports `p.grad *= scale`, `p.grad.mul_(scale)` and the like in a loop over
    `model.parameters()`, if `scale` is an argument that is known to be a tensor, and the function
    never reads a device. A note in a class that works with `DistributedDataParallel` or FSDP: each
    of its processes has one GPU.

    ## Why is this bad?
    The operation raises "Expected all tensors to be on the same device" if the parameters are on
    several devices. With offloading, they and their gradients are on the CPU, and the scale was
    computed on a GPU.

    ## Fix safety
    No fix is offered: `scale.to(p.grad.device)` in the loop, or once for each device.

    ## References
    - pytorch/torchtune pull request 1941
    """

    code = "DEV565"
    name = "gradients-meet-argument"
    triggers = ((".grad", "parameters(", "Tensor"),)

    bad = (
        Bad(
            """\
import torch
from torch import nn

def scale_gradients(model: nn.Module, scale: torch.Tensor) -> None:
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= scale
""",
            lines=(7,),
            instead="""\
import torch
from torch import nn

def scale_gradients(model: nn.Module, scale: torch.Tensor) -> None:
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= scale.to(p.grad.device)
""",
        ),
        Bad(
            """\
import torch

def divide(model, tokens: torch.Tensor):
    for name, weight in model.named_parameters():
        weight.grad.div_(tokens)
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

def scale_gradients(model, scale: torch.Tensor, factor: float) -> None:
    scale = scale.to(next(model.parameters()).device)
    for p in model.parameters():
        p.grad *= scale

def by_number(model, factor: float) -> None:
    for p in model.parameters():
        p.grad *= factor
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            given = _arguments(module, function)
            if not given or any(e.attr == "device" for e in module.nodes(ast.Attribute, function)):
                continue
            for loop in module.nodes(ast.For, function):
                if not (isinstance(loop.iter, ast.Call) and called(loop.iter) in _OVER):
                    continue
                bound = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
                for node, operand in _scaled(module, loop, bound):
                    if operand.id not in given or not _is_tensor(module, operand):
                        continue
                    if module.function_of(node) is function:
                        yield self._found(module, node, operand, loop)

    def _found(self, module: Module, node: ast.AST, operand: ast.Name, loop: ast.For) -> Finding:
        return self.finding(
            module,
            node,
            f"`{operand.id}` is on the caller's device, and each gradient is on that of its "
            "parameter, which may be another one",
            severity=Severity.NOTE if _is_of_one_gpu(module, node) else None,
            trail=[(loop, "all parameters of the model"), (node, "the two are combined")],
        )


def _is_of_one_gpu(module: Module, node: ast.AST) -> bool:
    """The class wraps its model for many processes, each of which has one GPU."""
    cls = module.class_of(node)
    around = cls if cls is not None else module.function_of(node)
    return any(True for _ in module.calls(*_PARALLEL, inside=around))


def _arguments(module: Module, function: FunctionNode) -> set[str]:
    """Arguments that are never bound again."""
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    bound = {e.id for e in module.nodes(ast.Name, function) if isinstance(e.ctx, ast.Store)}
    return {each.arg for each in given} - bound


def _is_tensor(module: Module, operand: ast.Name) -> bool:
    value = module.value_of(operand)
    return value.is_tensor and value.sure


def _scaled(module: Module, loop: ast.For, bound: set[str]) -> Iterator[tuple[ast.AST, ast.Name]]:
    for step in module.nodes(ast.AugAssign, loop):
        if _is_gradient(step.target, bound) and isinstance(step.value, ast.Name):
            yield step, step.value
    for call in module.calls(*_IN_PLACE, inside=loop):
        owner = receiver(call)
        first = call.args[0] if call.args else None
        if owner is not None and _is_gradient(owner, bound) and isinstance(first, ast.Name):
            yield call, first


def _is_gradient(node: ast.expr, bound: set[str]) -> bool:
    while isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    of = node.value if isinstance(node, ast.Attribute) and node.attr == "grad" else None
    return isinstance(of, ast.Name) and of.id in bound
