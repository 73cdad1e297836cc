from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode

_OF_ONE = ("parameters", "buffers", "modules", "children")


class FirstOfSeveral(Rule):
    """The device of the first of several modules is returned as the device of all of them.

    ## What it does
    Reports a function that loops over modules and returns the device of the first one, without a
    look at the others.

    Not reported: a loop over the parts of one module, and a last resort after an earlier loop.

    ## Why is this bad?
    Inputs and noise are made on the CPU and meet a model on the GPU. The parts of a pipeline may be
    on different devices, for example the text encoder on the CPU. Which part comes first depends on
    its name only.

    ## Fix safety
    No fix is offered: which part decides depends on the design. One that is neither on the CPU nor
    on meta is a good choice.

    ## References
    - huggingface/diffusers: `DiffusionPipeline.device` was the device of the first component
    """

    code = "DEV549"
    name = "first-of-several"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.MEDIUM
    triggers = (("Module", ".device", "return", "for "),)

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Pipeline:
    @property
    def device(self):
        parts = [each for each in self.parts.values() if isinstance(each, nn.Module)]
        for part in parts:
            return part.device
        return torch.device("cpu")
""",
            lines=(9,),
            instead="""\
import torch
from torch import nn

class Pipeline:
    @property
    def device(self):
        parts = [each for each in self.parts.values() if isinstance(each, nn.Module)]
        for part in parts:
            if part.device.type not in ("cpu", "meta"):
                return part.device
        for part in parts:
            return part.device
        return torch.device("cpu")
""",
        ),
        Bad(
            """\
from torch import nn

def device_of(models: list[nn.Module]):
    for model in models:
        return next(model.parameters()).device
    return None
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Pipeline:
    @property
    def device(self):
        parts = [each for each in self.parts.values() if isinstance(each, nn.Module)]
        for part in parts:
            if part.device.type != "cpu":
                return part.device
        for part in parts:
            return part.device
        return torch.device("cpu")
"""
        ),
        Good(
            """\
from torch import nn

class Net(nn.Module):
    @property
    def device(self):
        for parameter in self.parameters():
            return parameter.device
"""
        ),
        Good(
            """\
from torch import nn

def device_of(models: list[nn.Module], name):
    for model in models:
        if model.name == name:
            return model.device
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for loop in module.nodes(ast.For, function):
                given = _first(module, loop)
                if given is None or not _are_modules(module, loop):
                    continue
                if not _is_last_resort(module, function, loop):
                    yield self.finding(
                        module,
                        given,
                        f"`{function.name}` returns the device of the first of "
                        f"`{module.text(loop.iter)}`; the others may be on another device, such "
                        "as a GPU",
                        trail=[(loop, "the loop returns in its first iteration")],
                    )


def _first(module: Module, loop: ast.For) -> ast.Return | None:
    """`return part.device` as all that the loop does."""
    *before, last = loop.body
    if not isinstance(last, ast.Return) or last.value is None:
        return None
    device = behind(module, last.value)
    plain = all(isinstance(each, ast.Assign) for each in before)
    is_device = isinstance(device, ast.Attribute) and device.attr == "device"
    return last if plain and is_device and _is_of(device, loop) else None


def _is_of(device: ast.expr, loop: ast.For) -> bool:
    """Read from what the loop gives."""
    bound = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
    bound |= {
        each.id
        for statement in loop.body
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    return any(isinstance(each, ast.Name) and each.id in bound for each in ast.walk(device))


def _are_modules(module: Module, loop: ast.For) -> bool:
    """Modules side by side, not the parts of one."""
    source = behind(module, loop.iter)
    if isinstance(source, ast.Call) and called(source).endswith(_OF_ONE):
        return False
    if isinstance(loop.target, ast.Name) and module.value_of(loop.target).may_be(Kind.MODULE):
        return True
    return _is_filtered(module, source) or _is_declared(module, loop)


def _is_filtered(module: Module, source: ast.expr) -> bool:
    """`[each for each in parts if isinstance(each, nn.Module)]`."""
    tests = [each for node in ast.walk(source) if isinstance(node, ast.comprehension)
             for each in node.ifs]  # fmt: skip
    return any(
        isinstance(each, ast.Call)
        and called(each) == "isinstance"
        and len(each.args) > 1
        and module.qualified(each.args[1]).endswith("Module")
        for each in tests
    )


def _is_declared(module: Module, loop: ast.For) -> bool:
    """A parameter that is annotated as modules."""
    function = module.function_of(loop)
    name = receiver(loop.iter) if isinstance(loop.iter, ast.Call) else loop.iter
    given = function.args if function is not None else None
    return isinstance(name, ast.Name) and any(
        each.arg == name.id
        and each.annotation is not None
        and "Module" in ast.unparse(each.annotation)
        for each in ([*given.posonlyargs, *given.args, *given.kwonlyargs] if given else [])
    )


def _is_last_resort(module: Module, function: FunctionNode, loop: ast.For) -> bool:
    """An earlier loop looked for a better one."""
    text = module.text(loop.iter)
    return any(
        each is not loop and each.lineno < loop.lineno and module.text(each.iter) == text
        for each in module.nodes(ast.For, function)
    )
