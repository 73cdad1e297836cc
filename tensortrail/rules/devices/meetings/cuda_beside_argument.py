from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.described import described
from tensortrail.rules.devices.shared.meetings.device_written import device_expression
from tensortrail.rules.devices.shared.meetings.modelled import made_after_another
from tensortrail.rules.devices.shared.meetings.put_on_current import (
    is_surely_elsewhere,
    put_on,
    puts_that_meet,
)
from tensortrail.rules.devices.shared.named.current_gpu import under_is_cuda, written
from tensortrail.rules.devices.shared.written_for.beforehand import is_example
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.for_gpus import (
    has_another_say,
    is_for_gpus,
    spreads_its_parts,
)
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import Place
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class CudaBesideArgument(Rule):
    """A tensor on the current GPU is combined with tensors on the caller's device.

    ## What it does
    Looks at functions in which no other device is available. Reports `.cuda()`, `.to("cuda")`,
    `device="cuda"`, and a call that leaves a `device="cuda"` default as it is, if an operation
    combines the tensor with

    - a parameter of the module or the output of a submodule;
    - an argument that may be on any device.

    Also reports `y.cuda()` under `if x.is_cuda`: `x` may be on another GPU than the current one.
    This is a warning only if a file of the same folder, or one that imports this file directly or
    through others, names a GPU other than the first (`"cuda:1"`, `f"cuda:{rank}"`) and is not an
    example.

    A test of `torch.cuda.is_available()` changes nothing: on a machine with a GPU, the caller may
    still choose the CPU.

    Reported as a note, because the code may be meant for the current GPU only: files that never
    read the device of a tensor, programs in which no option chooses the CPU or another GPU, and
    projects that write `.cuda()` nearly as often as they name a device. If the file itself puts the
    module on the CPU or on another GPU (`run("cpu")`, `net.to("cuda:1")`), it is still a warning.
    Projects that call `torch.cuda.set_device` get a note too, since each of their processes makes
    its GPU the current one.

    Not reported: files that run on GPUs only, because they import Triton or CUDA bindings.

    The notes are off by default, except for `torch.empty(n, dtype=x.dtype, device="cuda")` with an
    argument `x`, and `torch.ones(n).type(x.type())`, unless the project calls
    `torch.cuda.set_device`.

    ## Why is this bad?
    With the model on the CPU, or on a GPU that is not the current one, the operation raises
    "Expected all tensors to be on the same device".

    ## Fix safety
    Unsafe: where several devices are at hand, another may be meant.

    ## References
    - NVIDIA/NeMo pull request 7444
    - coqui-ai/TTS, "pass sequence mask to the same device as the input"
    """

    code = "DEV538"
    name = "cuda-beside-argument"
    severity = Severity.WARNING
    notes = False
    needs_callers = True
    confidence = Confidence.MEDIUM
    triggers = (
        ("torch", ".cuda("),
        ("torch", '"cuda'),
        ("torch", "'cuda"),
        ("torch", ".type("),
    )
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        blank = torch.ones(len(x), 3).cuda()\n"
            "        return torch.cat([x, blank], 1)\n",
            lines=(7,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        blank = torch.ones(len(x), 3).to(x.device)\n"
            "        return torch.cat([x, blank], 1)\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        blank = torch.zeros(len(x), 3)\n"
            "        if torch.cuda.is_available():\n            blank = blank.cuda()\n"
            "        return torch.cat([x, blank], 1)\n",
            lines=(9,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        blank = torch.zeros(len(x), 3)\n"
            "        if torch.cuda.is_available():\n            blank = blank.to(x.device)\n"
            "        return torch.cat([x, blank], 1)\n",
        ),
        Bad(
            "import torch\n\n\ndef mask(lengths: torch.Tensor, longest: int):\n"
            "    numbers = torch.arange(longest)\n    if lengths.is_cuda:\n"
            "        numbers = numbers.cuda()\n    return numbers < lengths.unsqueeze(1)\n",
            lines=(7,),
            fixed="import torch\n\n\ndef mask(lengths: torch.Tensor, longest: int):\n"
            "    numbers = torch.arange(longest)\n    if lengths.is_cuda:\n"
            "        numbers = numbers.to(lengths.device)\n"
            "    return numbers < lengths.unsqueeze(1)\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Shifted(nn.Module):\n"
            "    def __init__(self, size):\n        super().__init__()\n"
            "        self.scale = nn.Parameter(torch.ones(size))\n\n"
            "    def blank(self, size: int):\n"
            "        return self.scale + torch.randn(size, device='cuda')\n",
            lines=(11,),
            instead="import torch\nfrom torch import nn\n\n\nclass Shifted(nn.Module):\n"
            "    def __init__(self, size):\n        super().__init__()\n"
            "        self.scale = nn.Parameter(torch.ones(size))\n\n"
            "    def blank(self, size: int):\n"
            "        return self.scale + torch.randn(size, device=self.scale.device)\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Noisy(nn.Module):\n"
            "    def forward(self, mean, spread):\n"
            "        noise = torch.randn(mean.shape).cuda()\n"
            "        return mean + spread.exp() * noise\n",
            lines=(7,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Noisy(nn.Module):\n"
            "    def forward(self, mean, spread):\n"
            "        noise = torch.randn(mean.shape).to(spread.device)\n"
            "        return mean + spread.exp() * noise\n",
        ),
        Bad(
            """\
import torch
from torch import nn

def mask(n, device="cuda"):
    return torch.ones(n, device=device)

class Masked(nn.Module):
    def forward(self, x):
        return x * mask(x.shape[1])
""",
            lines=(9,),
            fixed="""\
import torch
from torch import nn

def mask(n, device="cuda"):
    return torch.ones(n, device=device)

class Masked(nn.Module):
    def forward(self, x):
        return x * mask(x.shape[1], device=x.device)
""",
        ),
        Bad(
            """\
import torch
import triton

def scaled(x: torch.Tensor, kernel):
    out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    kernel[(1,)](x, out)
    return out
""",
            lines=(5,),
            fixed="""\
import torch
import triton

def scaled(x: torch.Tensor, kernel):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(1,)](x, out)
    return out
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Labels(nn.Module):
    def forward(self, x: torch.Tensor):
        return torch.ones(1).type(x.type()).expand_as(x), x.type(torch.ones(1).type())
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        blank = torch.ones(len(x), 3).to(x.device)\n"
            "        return torch.cat([x, blank], 1)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        blank = torch.ones(len(x), 3).cuda()\n"
            "        return torch.cat([x.cuda(), blank], 1)\n"
        ),
        Good("import torch\n\n\ndef joined(x, y):\n    return torch.cat([x, y.cuda()])\n"),
        Good(
            "import torch\nimport triton\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        blank = torch.ones(len(x), 3, device='cuda')\n"
            "        return torch.cat([x, blank], 1)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\ndef check_one():\n"
            "    weight = nn.Parameter(torch.rand(2, 2).cuda())\n"
            "    return torch.rand(2, 2).cuda() * weight\n"
        ),
        Good(
            "import torch\nimport torch.distributed as dist\nfrom torch import nn\n\n\n"
            "class Shared(nn.Module):\n    def forward(self, x):\n"
            "        total = torch.zeros(3).cuda()\n        dist.all_reduce(total)\n"
            "        return torch.cat([x, total])\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        if x.device.type == 'cuda':\n"
            "            blank = torch.ones(len(x), 3, device='cuda')\n"
            "            return torch.cat([x, blank], 1)\n        return x\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Padded(nn.Module):\n"
            "    def forward(self, x):\n        assert x.is_cuda\n"
            "        blank = torch.ones(len(x), 3).cuda()\n"
            "        return torch.cat([x, blank], 1)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        yield from self._typed_alike(module, reported)
        if is_for_gpus(module):
            return
        yield from self._under_is_cuda(module, reported)
        for function in outermost(module, written(module)):
            if sets_up(function) or has_another_say(module, function):
                continue
            if not spreads_its_parts(module, function):
                for put, met, there in puts_that_meet(module, function, reported):
                    yield self._met(module, function, put, met, there)

    def _typed_alike(self, module: Module, reported: set[ast.AST]) -> Iterator[Finding]:
        for made, said, owner in made_after_another(module):
            reported.add(made)
            yield self.finding(
                module,
                said,
                f"`{one_line(module, made)}` takes the dtype of `{owner}`, but not its device, "
                "which may not be the current GPU",
                severity=Severity.NOTE,
                fixes=[put_on(module, made, f"{owner}.device")],
                told=not module.sets_current_gpu(),
            )

    def _under_is_cuda(self, module: Module, reported: set[ast.AST]) -> Iterator[Finding]:
        for put, owner in under_is_cuda(module):
            reported.add(put)
            usual = is_example(module) or module.is_for_current_gpu()
            others = None if usual else module.numbered_gpu()
            set_before = others is not None and module.sets_current_gpu()
            yield self.finding(
                module,
                put,
                f"`{one_line(module, put)}` is on the current GPU, but `{owner}` may be on another "
                f"one: use `{owner}.device`{_named(others)}",
                severity=Severity.NOTE if others is None or set_before else None,
                trail=[(put, "put on the current GPU")],
                fixes=[put_on(module, put, f"{owner}.device")],
            )

    def _met(
        self, module: Module, function: FunctionNode, put: ast.Call, met: ast.expr, there: Place
    ) -> Finding:
        device = device_expression(module.places(function), there, function, put)
        return self.finding(
            module,
            put,
            f"`{one_line(module, put)}` is on the current GPU, but line {met.lineno} uses it "
            f"together with a tensor {described(there)}",
            severity=None if is_surely_elsewhere(module, function, put, there) else Severity.NOTE,
            trail=((put, "put on the current GPU"), (met, f"meets a tensor {described(there)}")),
            fixes=[put_on(module, put, device)],
        )


def _named(others: tuple[str, int] | None) -> str:
    if others is None:
        return ""
    path, line = others
    return f"; line {line} of {path.replace(os.sep, '/')} names another GPU than the first"
