from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.launches import (
    launched_by,
    launches,
    left_to_callers,
    may_choose,
    under_a_choice,
)
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests


class LaunchOffItsGpu(Rule):
    """A Triton kernel runs on the current GPU; other launches choose the GPU of their tensors.

    ## What it does
    Reports `kernel[grid](x, out)` of a Triton kernel that takes an argument of the function, if
    another launch in the file is under `with torch.cuda.device(x.device)`, and this one is not. If
    the rule is selected, also if only other files of the project do that, or use
    `torch.cuda.device_of(x)`. Only the first launch in a function is reported. If the launch is in
    a function of another file, the call of that function is reported, provided that the code around
    the call reads the device of the tensor.

    Not reported: a launch in a function that calls `set_device` or has a decorator that may choose
    the GPU, and one whose callers choose it. If the processes of the project set one GPU each, only
    launches in the same file count.

    ## Why is this bad?
    Triton launches on the current GPU, wherever the tensors are. With tensors on another GPU the
    kernel reads and writes memory that it cannot reach, or raises an error about its pointers.
    The code works as long as there is one GPU, or one for each process.

    ## What you may see
    ```
    ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)
    ```

    ## Fix safety
    No fix is offered: put the launch under `with torch.cuda.device(x.device):`.

    ## References
    - bitsandbytes-foundation/bitsandbytes pull request 1691
    - Dao-AILab/flash-attention: "otherwise Triton tries to launch from cuda:0"
    """

    code = "DEV669"
    name = "launch-off-its-gpu"
    severity = Severity.NOTE
    proven = False
    notes = False
    triggers = (("torch", "](", "triton"), ("torch", ".device", "triton"))

    bad = (
        Bad(
            """\
import torch
import triton

@triton.jit
def kernel(x, out):
    pass

def scaled(x):
    out = torch.empty_like(x)
    with torch.cuda.device(x.device):
        kernel[(1,)](x, out)
    return out

def halved(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out)
    return out
""",
            lines=(16,),
            instead="""\
import torch
import triton

@triton.jit
def kernel(x, out):
    pass

def scaled(x):
    out = torch.empty_like(x)
    with torch.cuda.device(x.device):
        kernel[(1,)](x, out)
    return out

def halved(x):
    out = torch.empty_like(x)
    with torch.cuda.device(x.device):
        kernel[(1,)](x, out)
    return out
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import triton

@triton.jit
def kernel(x, out):
    pass

def halved(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out)
    return out
"""
        ),
        Good(
            """\
import torch
import triton

@triton.jit
def kernel(x, out):
    pass

def scaled(x):
    out = torch.empty_like(x)
    with torch.cuda.device(x.device):
        kernel[(1,)](x, out)
    return out

def halved(x):
    with torch.cuda.device(x.device):
        return _halved(x)

def _halved(x):
    out = torch.empty_like(x)
    kernel[(1,)](x, out)
    return out
"""
        ),
        Good(
            """\
import torch
import triton

@triton.jit
def kernel(x, out):
    pass

def scaled(x):
    out = torch.empty_like(x)
    with torch.cuda.device(x.device):
        kernel[(1,)](x, out)
    return out

def halved(x):
    torch.cuda.set_device(x.device)
    out = torch.empty_like(x)
    kernel[(1,)](x, out)
    return out
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or not module.launches_on_gpu_of_tensors():
            return
        all_launches = [(each, list(launches(module, each))) for each in functions(module)]
        told = any(under_a_choice(module, each) for _, own in all_launches for each in own)
        for function, own in all_launches:
            if may_choose(module, function):
                continue
            here = [*own, *launched_by(module, function)]
            free = [each for each in here if not under_a_choice(module, each)]
            if free and not left_to_callers(module, function):
                yield self._found(module, free[0], told)

    def _found(self, module: Module, call: ast.Call, told: bool) -> Finding:
        what = "this kernel" if isinstance(call.func, ast.Subscript) else "the kernel of this call"
        return self.finding(
            module,
            call,
            f"{what} runs on the current GPU, wherever its tensors are: other code of the project "
            "launches under `with torch.cuda.device(...)` of a tensor",
            told=told,
        )
