from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.for_a_kernel import (
    TYPES,
    MadeForKernel,
    made_for_a_kernel,
)
from tensortrail.rules.devices.shared.meetings.modelled import made_after_another
from tensortrail.rules.devices.shared.named.devices_said import is_in_a_file_that_asks_tensors
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.shared.sentences import one_line


class KernelOnCurrentGpu(Rule):
    """A kernel takes an argument together with a tensor that was made on the current GPU.

    ## What it does
    Reports, as a note, `torch.empty(n, device="cuda")`, `x.cuda()` and `torch.cuda.FloatTensor(n)`
    if the tensor goes, together with a tensor argument of the function, into

    - a kernel that is launched, as in `kernel[grid](x, out)`;
    - a function without Python code whose result is not used, as in `native.fill(x, out)`.

    If the project calls `torch.cuda.set_device`, only files that use the device of a tensor
    elsewhere are reported: in others, the current GPU may be the only one that a process uses.

    Not reported: under `with torch.cuda.device(...)`, after `set_device` in the function, and in
    functions with a decorator that may choose the GPU.

    ## Why is this bad?
    If the argument is on another GPU than the current one, the kernel reads and writes memory of
    two GPUs: it raises an illegal memory access, or works on wrong numbers.

    ## What you may see
    ```
    RuntimeError: CUDA error: an illegal memory access was encountered
    ```

    ## Fix safety
    Unsafe: with several arguments, another device may be meant.

    ## References
    - state-spaces/mamba, commit 2bca3847b8
    - NVIDIAGameWorks/kaolin, commit 207e187bbc
    """

    code = "DEV665"
    name = "kernel-on-current-gpu"
    severity = Severity.NOTE
    proven = False
    notes = False
    triggers = (
        ("torch", ".cuda("),
        ("torch", '"cuda'),
        ("torch", "'cuda"),
        *(f"cuda.{each}" for each in TYPES),
    )

    bad = (
        Bad(
            """\
import torch
import triton

@triton.jit
def scale(x, out):
    pass

def scaled(x: torch.Tensor):
    out = torch.empty(x.shape[0], device="cuda")
    scale[(1,)](x, out)
    return out
""",
            lines=(9,),
            fixed="""\
import torch
import triton

@triton.jit
def scale(x, out):
    pass

def scaled(x: torch.Tensor):
    out = torch.empty(x.shape[0], device=x.device)
    scale[(1,)](x, out)
    return out
""",
        ),
        Bad(
            """\
import torch
from . import native

def nearest(target: torch.Tensor, source: torch.Tensor):
    rows = torch.cuda.IntTensor(len(target), 3)
    far = torch.zeros(len(target)).cuda().float()
    native.nearest_forward(target.contiguous(), source, rows, far)
    return rows, far
""",
            lines=(5, 6),
            instead="""\
import torch
from . import native

def nearest(target: torch.Tensor, source: torch.Tensor):
    rows = torch.empty(len(target), 3, dtype=torch.int32, device=target.device)
    far = torch.zeros(len(target), device=target.device)
    native.nearest_forward(target.contiguous(), source, rows, far)
    return rows, far
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import triton

@triton.jit
def scale(x, out):
    pass

def scaled(x: torch.Tensor):
    out = torch.empty(x.shape[0], device=x.device)
    scale[(1,)](x, out)
    return out
"""
        ),
        Good(
            """\
import torch
from . import native

def nearest(target: torch.Tensor):
    torch.cuda.set_device(target.device)
    rows = torch.zeros(len(target), device="cuda")
    native.nearest_forward(target, rows)
    return rows
"""
        ),
        Good(
            """\
import torch
from . import native

def nearest(target: torch.Tensor):
    with torch.cuda.device(target.device):
        rows = torch.zeros(len(target), device="cuda")
        native.nearest_forward(target, rows)
    return rows
"""
        ),
        Good(
            """\
import torch
from . import native

@native.on_the_gpu_of_its_argument
def nearest(target: torch.Tensor):
    rows = torch.zeros(len(target), device="cuda")
    native.nearest_forward(target, rows)
    return rows
"""
        ),
        Good(
            """\
import logging
import torch

def shown(x: torch.Tensor):
    blank = torch.zeros(len(x), device="cuda")
    logging.info("%s beside %s", x, blank)
    return blank
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        elsewhere = {made for made, _, _ in made_after_another(module)}  # DEV538 tells of these
        for each in made_for_a_kernel(module):
            if each.made not in elsewhere:
                yield self._found(module, each)

    def _found(self, module: Module, found: MadeForKernel) -> Finding:
        made, launch, owner = found
        return self.finding(
            module,
            made,
            f"`{one_line(module, made)}` is on the current GPU, but the kernel in line "
            f"{launch.lineno} uses it with `{owner}`, which may be on another GPU",
            trail=((made, "put on the current GPU"), (launch, f"used with `{owner}`")),
            fixes=[_fix(module, found)],
            told=not module.sets_current_gpu() or is_in_a_file_that_asks_tensors(module, made),
        )


def _fix(module: Module, found: MadeForKernel) -> Fix | None:
    said, device = keyword(found.made, "device"), f"{found.beside}.device"
    if said is None:
        return None
    return module.fix(f"put it on `{device}`", Safety.UNSAFE, module.replace(said, device))
