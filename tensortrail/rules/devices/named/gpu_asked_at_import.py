from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.current_gpu_asked import asked_at_import
from tensortrail.rules.devices.shared.named.only_with_cuda import asked_of_cuda, needs_cuda
from tensortrail.rules.devices.shared.written_for.beforehand import is_example
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line

_FOR_GPUS = ("triton", "cupy", "pycuda", "cuda", "flash_attn", "apex", "numba")
"""Packages that files for GPUs alone import."""


class GpuAskedAtImport(Rule):
    """A module asks a GPU what it can do while it is imported, whether or not there is one.

    ## What it does
    Reports calls such as `torch.cuda.get_device_capability()` outside of functions, if no condition
    around them tests for a GPU, and the file or one that imports it can also work without a GPU: it
    calls `torch.cuda.is_available()`, or has an option for the CPU.

    Also reports, except in examples, a default value that is the current GPU: `device: int =
    torch.cuda.current_device()` in a class or function, or what a function named so gives.

    Not reported: examples, and calls in programs (`if __name__ == "__main__"`) and in files that
    import what only GPUs have, such as Triton.

    ## Why is this bad?
    Without a GPU, the import raises, and every program that imports the module fails, even one that
    would use the CPU. With a GPU, CUDA starts in every process that imports the module: before the
    process chooses its GPU, and before it forks workers, which then cannot use CUDA. A default
    value stays the first GPU, whichever GPU the process chooses later.

    ## What you may see
    ```
    RuntimeError: Found no NVIDIA driver on your system.
    RuntimeError: Cannot re-initialize CUDA in forked subprocess.
    ```

    ## Fix safety
    No fix is offered: make the call where its result is used.

    ## References
    - predibase/lorax, `fp8_supported`
    - ModelTC/LightX2V, the choice of an attention kernel
    """

    code = "DEV637"
    name = "gpu-asked-at-import"
    severity = Severity.WARNING
    warns = False
    triggers = (
        ("current_device", "def "),
        *(("torch", f".{each}(") for each in needs_cuda()),
    )
    bad = (
        Bad(
            """\
import torch

small_floats = torch.cuda.get_device_capability()[0] >= 9

def cached(keys):
    return keys.to(torch.uint8) if small_floats else keys

def loaded(model):
    return model.to("cuda" if torch.cuda.is_available() else "cpu")
""",
            lines=(3,),
            instead="""\
import torch

def cached(keys):
    small_floats = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] >= 9
    return keys.to(torch.uint8) if small_floats else keys

def loaded(model):
    return model.to("cuda" if torch.cuda.is_available() else "cpu")
""",
        ),
        Bad(
            """\
import torch
from dataclasses import dataclass

@dataclass
class Arguments:
    width: int = 1024
    device: int = torch.cuda.current_device()

def blank(n, device=torch.cuda.current_device()):
    return torch.zeros(n, device=device)
""",
            lines=(7, 9),
            instead="""\
import torch
from dataclasses import dataclass, field

@dataclass
class Arguments:
    width: int = 1024
    device: int = field(default_factory=torch.cuda.current_device)

def blank(n, device=None):
    return torch.zeros(n, device=torch.cuda.current_device() if device is None else device)
""",
        ),
        Bad(
            """\
from devices import Device

def converted(graph, device=Device._current_device()):
    return graph, device
""",
            lines=(3,),
            instead="""\
from devices import Device

def converted(graph, device=None):
    return graph, device or Device._current_device()
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def started(rank):
    torch.cuda.set_device(rank)

    def blank(n, device=torch.cuda.current_device()):
        return torch.zeros(n, device=device)

    return blank
"""
        ),
        Good(
            """\
import torch

small_floats = False
if torch.cuda.is_available():
    small_floats = torch.cuda.get_device_capability()[0] >= 9

def cached(keys):
    return keys.to(torch.uint8) if small_floats else keys
"""
        ),
        Good(
            """\
import torch

try:
    kind = torch.cuda.get_device_name()
except RuntimeError:
    kind = "cpu" if not torch.cuda.is_available() else ""

def shown():
    return kind
"""
        ),
        Good(
            """\
import torch

def shown(model):
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return ""

if __name__ == "__main__":
    print(torch.cuda.get_device_name())
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or is_example(module):
            return
        asked = [each for each in asked_of_cuda(module) if module.function_of(each) is None]
        asked = [each for each in asked if not _is_in_a_lambda(module, each)]
        for call in _current_by_default(module):
            if call in asked:
                asked.remove(call)
            yield self.finding(
                module,
                call,
                "this default is computed once, at import: that starts CUDA, or raises without a "
                "GPU, and the default stays the GPU that is current at that time",
            )
        if not asked or _is_a_program(module) or _is_for_gpus(module):
            return
        if not module.may_use_cpu():
            return
        for call in asked:
            yield self.finding(
                module,
                call,
                f"`{one_line(module, call.func)}` runs at import: without a GPU the import raises, "
                "and with one it starts CUDA",
            )


def _current_by_default(module: Module) -> Iterator[ast.Call]:
    """The current GPU as default of an argument or of a field."""
    for function in functions(module):
        if module.function_of(function) is None:
            yield from asked_at_import(module, function)
    for call in module.calls("torch.cuda.current_device"):
        above = module.parent(call)
        if not isinstance(above, (ast.Assign, ast.AnnAssign)) or module.function_of(call):
            continue
        if isinstance(module.parent(above), ast.ClassDef):
            yield call


def _is_a_program(module: Module) -> bool:
    return any(
        isinstance(each.test, ast.Compare) and module.text(each.test.left) == "__name__"
        for each in module.nodes(ast.If)
    ) or not any(module.nodes(kind) for kind in (ast.FunctionDef, ast.ClassDef))


def _is_in_a_lambda(module: Module, call: ast.Call) -> bool:
    return any(isinstance(up, ast.Lambda) for up in module.ancestors(call))


def _is_for_gpus(module: Module) -> bool:
    return not imported_packages(module).isdisjoint(_FOR_GPUS)
