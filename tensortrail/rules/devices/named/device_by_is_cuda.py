from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import is_cpu
from tensortrail.rules.shared.objects import called, is_self
from tensortrail.rules.shared.origins import behind


class Guess(NamedTuple):
    """A device that is written out after a look at the kind of device of a tensor."""

    node: ast.expr
    owner: ast.expr
    """Whose device would have been at hand."""
    used: ast.AST
    """Where the answer is a device."""


class DeviceByIsCuda(Rule):
    """Code chooses `"cuda"` or `"cpu"` by `x.is_cuda`, although `x.device` names the device.

    ## What it does
    Reports, as a note, `"cuda" if x.is_cuda else "cpu"` and the same choice by
    `x.device.type == "cuda"` or by an `if` statement, if the answer is used as a device: in
    `device=`, `.to(...)` or `torch.device(...)`.

    Not reported: an argument of `torch.autocast`, which takes the type of a device.

    ## Why is this bad?
    If `x` is on the second GPU, the new tensor is on the current one; if `x` is on another kind of
    accelerator, the new tensor is on the CPU. The next operation with both raises "Expected all
    tensors to be on the same device".

    ## Fix safety
    Unsafe: code after it may compare the answer with a string.

    ## References
    - jeshraghian/snntorch, "fix a bug may trig device inconsistency"
    - pytorch documentation, `torch.Tensor.is_cuda`
    """

    code = "DEV636"
    name = "device-by-is-cuda"
    severity = Severity.NOTE
    triggers = (("is_cuda", "cuda"), (".type", '"cuda'), (".type", "'cuda"))
    bad = (
        Bad(
            """\
import torch

def spikes(data: torch.Tensor, steps: int):
    device = torch.device("cuda") if data.is_cuda else torch.device("cpu")
    return torch.zeros(steps, device=device)
""",
            lines=(4,),
            fixed="""\
import torch

def spikes(data: torch.Tensor, steps: int):
    device = data.device
    return torch.zeros(steps, device=device)
""",
        ),
        Bad(
            """\
import torch

def hidden(x, size):
    if x.is_cuda:
        device = "cuda"
    else:
        device = "cpu"
    return torch.zeros(len(x), size).to(device)
""",
            lines=(5,),
        ),
        Bad(
            """\
import torch

def table(model, rows):
    return torch.ones(rows, device="cuda" if next(model.parameters()).is_cuda else "cpu")

def rows(x, size):
    return torch.arange(size).to("cpu" if x.device.type != "cuda" else "cuda:0")
""",
            lines=(4, 7),
            fixed="""\
import torch

def table(model, rows):
    return torch.ones(rows, device=next(model.parameters()).device)

def rows(x, size):
    return torch.arange(size).to(x.device)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def run(model, x):
    kind = "cuda" if x.is_cuda else "cpu"
    with torch.autocast(kind):
        return model(x)
"""
        ),
        Good(
            """\
import torch

def table(x, rows):
    device = f"cuda:{x.get_device()}" if x.is_cuda else "cpu"
    return torch.ones(rows, device=device)
"""
        ),
        Good(
            """\
import torch

def table(rows):
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    return torch.ones(rows, device=device)
"""
        ),
        Good(
            """\
import torch

def table(x, rows):
    kind = "cuda" if x.is_cuda else "cpu"
    return torch.ones(rows, device=torch.device(kind, max(x.get_device(), 0)))
"""
        ),
        Good(
            """\
import torch

def name(x):
    kind = "cuda" if x.is_cuda else "cpu"
    return f"{kind}-{len(x)}"
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for guess in (*_expressions(module), *_statements(module)):
            shown = f"{module.text(guess.owner)}.device"
            yield self.finding(
                module,
                guess.node,
                f"the choice here is between the current GPU and the CPU, but `{shown}` may be "
                "another GPU or another kind of accelerator",
                trail=[(guess.used, "used as a device")],
                fixes=[_fix(module, guess, shown)],
            )


def _fix(module: Module, guess: Guess, shown: str) -> Fix | None:
    if not isinstance(guess.node, ast.IfExp):
        return None
    edit = module.replace(guess.node, shown)
    return module.fix(f"use `{shown}`", Safety.UNSAFE, edit)


def _expressions(module: Module) -> Iterator[Guess]:
    for node in module.nodes(ast.IfExp):
        owner = _owner(module, node.test, node.body, node.orelse)
        used = _use(module, node) if owner is not None else None
        if owner is not None and used is not None:
            yield Guess(node, owner, used)


def _statements(module: Module) -> Iterator[Guess]:
    """`if x.is_cuda: device = "cuda"`, and `else: device = "cpu"`."""
    for node in module.nodes(ast.If):
        yes, no = _stored(node.body), _stored(node.orelse)
        if yes is None or no is None or module.text(yes[0]) != module.text(no[0]):
            continue
        owner = _owner(module, node.test, yes[1], no[1])
        used = _use_of_name(module, yes[0]) if owner is not None else None
        if owner is not None and used is not None:
            yield Guess(yes[1], owner, used)


def _stored(body: list[ast.stmt]) -> tuple[ast.Name, ast.expr] | None:
    one = body[0] if len(body) == 1 else None
    if not isinstance(one, ast.Assign) or len(one.targets) != 1:
        return None
    target = one.targets[0]
    return (target, one.value) if isinstance(target, ast.Name) else None


def _owner(module: Module, test: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr | None:
    """`x` of `x.is_cuda`, if the answers are a GPU that is written out and the CPU."""
    asked, holds = _asked(module, test)
    gpu, host = (yes, no) if holds else (no, yes)
    own = asked is None or is_self(asked)
    if own or not is_cuda_literal(module, gpu) or not is_cpu(module, host):
        return None
    return asked


def _asked(module: Module, test: ast.expr) -> tuple[ast.expr | None, bool]:
    """The tensor whose kind of device is asked for, and whether it is to be a GPU."""
    test = behind(module, test)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        asked, holds = _asked(module, test.operand)
        return asked, not holds
    if isinstance(test, ast.Attribute) and test.attr == "is_cuda":
        return test.value, True
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        said = getattr(test.comparators[0], "value", None)
        if said == "cuda" and isinstance(test.left, ast.Attribute) and test.left.attr == "type":
            device = test.left.value
            if isinstance(device, ast.Attribute) and device.attr == "device":
                return device.value, isinstance(test.ops[0], ast.Eq)
    return None, True


def _use(module: Module, node: ast.IfExp) -> ast.AST | None:
    """Where the choice is a device: at once, or by the name that it gets."""
    up = module.parent(node)
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        return _use_of_name(module, up.targets[0])
    call = module.parent(up) if isinstance(up, ast.keyword) else up
    is_device = isinstance(call, ast.Call) and _takes(module, call, node)
    return call if is_device else None


def _takes(module: Module, call: ast.Call, said: ast.expr) -> bool:
    if module.qualified(call.func) == "torch.device":
        return len(call.args) + len(call.keywords) == 1  # else a number is said too
    return said_device(module, call) is said


def _use_of_name(module: Module, name: ast.Name) -> ast.AST | None:
    inside = module.function_of(name)
    for use in module.uses(name.id, inside):
        up = module.parent(use)
        call = module.parent(up) if isinstance(up, ast.keyword) else up
        if isinstance(call, ast.Call) and called(call) != "autocast" and _takes(module, call, use):
            return call
    return None
