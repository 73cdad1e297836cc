from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import is_module
from tensortrail.rules.devices.shared.meetings.described import described, unless
from tensortrail.rules.devices.shared.meetings.device_written import made_there
from tensortrail.rules.devices.shared.meetings.lying import out_of_place
from tensortrail.rules.devices.shared.meetings.made_for_argument import made_for_argument
from tensortrail.rules.devices.shared.meetings.meant import only_binds_a_name
from tensortrail.rules.devices.shared.meetings.weighed import is_worth_telling, weight
from tensortrail.rules.devices.shared.modules.inputs_moved import may_have_moved
from tensortrail.rules.devices.shared.written_for.callers import caller_step
from tensortrail.rules.devices.shared.written_for.goes_along import only_sets_up
from tensortrail.rules.devices.shared.written_for.makers import (
    FACTORIES,
    left_to_its_default,
    made_without_device,
    makers_and_callers,
)
from tensortrail.rules.places import MODEL, FunctionPlaces, Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_ONE = "|".join(FACTORIES)


class FactoryWithoutDevice(Rule):
    """A tensor made without a device is combined with tensors on the caller's device.

    ## What it does
    Follows tensors through each function, also through variables, containers and project functions.
    Reports a tensor that `torch.zeros` and the like make without a `device`, if an operation
    combines it with

    - a parameter or buffer of the module, or the output of a submodule;
    - an argument of a module's method, or of a function that reads the device of its arguments, or
      what a function that is not known makes of such arguments;
    - a model that is an argument, by calling it, if the function reads the device of its weights;
    - an argument of a library's function, if the tensor takes the shape of the argument, or if an
      object of a plain class stores the tensor;
    - a tensor that the function puts on a device;
    - any tensor in a kernel of Triton or Numba (`kernel[grid]`), which runs on a GPU.

    A warning if the code writes the other device out, else a note. These notes are off by default,
    unless the function reads a device or the tensor takes the shape of an argument:

    - in files that name no GPU and are imported by none that does, except code that users of a
      library call;
    - for an argument of a plain function, if no call in the project passes it a tensor on a device;
    - in code that works on the CPU (a data set, an export, NumPy), and in packages that make a GPU
      the default device;
    - for a result that is moved at once.

    Not reported: an index, or a tensor without a dimension where a number would do.

    ## Why is this bad?
    The first run on a GPU raises "Expected all tensors to be on the same device"; CPU tests pass.

    ## Fix safety
    Unsafe: it passes the other tensor's device; another one may be meant.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV521"
    name = "factory-without-device"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    errors_as = Severity.WARNING
    notes = False
    needs_callers = True
    explains = ("DEV526", "DEV528", "DEV531", "DEV532", "DEV534", "DEV552", "NEW305")
    triggers = tuple(("torch", name) for name in FACTORIES)
    shape = (
        pattern(rb"\b(?:%s)(?:\s+as\s|\s*\((?![^()\n#'\"]*\bdevice\s*=[^=]))" % _ONE.encode()),
        # A parameter that callers may leave out:
        pattern(rb"device\b(?<=\bdevice)[^=\n(]*=\s*(?:None\b|['\"]cpu)"),
    )
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.proj = nn.Linear(n, n)\n\n"
            "    def forward(self, x):\n        steps = torch.arange(x.shape[1])\n"
            "        return self.proj(x) + steps\n",
            lines=(11,),
            fixed="import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.proj = nn.Linear(n, n)\n\n"
            "    def forward(self, x):\n"
            "        steps = torch.arange(x.shape[1], device=x.device)\n"
            "        return self.proj(x) + steps\n",
        ),
        Bad(
            "import torch as th\nfrom torch.nn import Linear, Module\n\n\n"
            "def bias(size):\n    return th.linspace(0, 1, size)\n\n\n"
            "class M(Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.w = Linear(n, n)\n\n"
            "    def forward(self, x):\n        added = bias(x.shape[-1])\n"
            "        return self.w(x) * added\n",
            lines=(6,),
        ),
        Bad(
            "import torch\n\n\ndef positions(n: int, device: torch.device):\n"
            "    rows = torch.arange(n, device=device)\n    offset = torch.ones(n)\n"
            "    return rows + offset\n",
            lines=(6,),
            fixed="import torch\n\n\ndef positions(n: int, device: torch.device):\n"
            "    rows = torch.arange(n, device=device)\n"
            "    offset = torch.ones(n, device=device)\n"
            "    return rows + offset\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def forward(self, x: torch.Tensor, mask=None):\n        if mask is None:\n"
            "            mask = torch.ones(x.shape[0], x.shape[1])\n        return x * mask\n",
            lines=(8,),
            fixed="import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def forward(self, x: torch.Tensor, mask=None):\n        if mask is None:\n"
            "            mask = torch.ones(x.shape[0], x.shape[1], device=x.device)\n"
            "        return x * mask\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Rotary(nn.Module):\n"
            "    def frequencies(self, length: torch.Tensor):\n"
            "        steps = torch.arange(0, 64, 2).float() / 64\n"
            "        return 1.0 / (length * 2) ** steps\n",
            lines=(7,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Rotary(nn.Module):\n"
            "    def frequencies(self, length: torch.Tensor):\n"
            "        steps = torch.arange(0, 64, 2, device=length.device).float() / 64\n"
            "        return 1.0 / (length * 2) ** steps\n",
        ),
        Bad(
            "import torch\n\n\ndef smoothed(x: torch.Tensor, gaussian: bool):\n"
            "    if gaussian:\n        kernel = torch.zeros(1, 1, 3, 3, device=x.device)\n"
            "    else:\n        kernel = torch.ones(1, 1, 3, 3)\n"
            "    return torch.nn.functional.conv2d(x, kernel)\n",
            lines=(8,),
            fixed="import torch\n\n\ndef smoothed(x: torch.Tensor, gaussian: bool):\n"
            "    if gaussian:\n        kernel = torch.zeros(1, 1, 3, 3, device=x.device)\n"
            "    else:\n        kernel = torch.ones(1, 1, 3, 3, device=x.device)\n"
            "    return torch.nn.functional.conv2d(x, kernel)\n",
        ),
        Bad(
            "import torch\n\n\ndef observed(target: torch.Tensor, classes: int):\n"
            "    found = torch.zeros(len(target), classes)\n"
            "    found[torch.arange(len(target)), target.long()] = 1\n    return found\n\n\n"
            "def blank(preds: torch.Tensor):\n    return torch.zeros(3, device=preds.device)\n",
            lines=(5,),
            fixed="import torch\n\n\ndef observed(target: torch.Tensor, classes: int):\n"
            "    found = torch.zeros(len(target), classes, device=target.device)\n"
            "    found[torch.arange(len(target)), target.long()] = 1\n    return found\n\n\n"
            "def blank(preds: torch.Tensor):\n    return torch.zeros(3, device=preds.device)\n",
        ),
        Bad(
            "import torch\nimport triton\n\n\n@triton.jit\ndef kernel(x, out, n):\n    pass\n\n\n"
            "def doubled(x: torch.Tensor):\n    out = torch.empty(x.numel(), dtype=x.dtype)\n"
            "    kernel[(x.numel(),)](x, out, x.numel())\n    return out\n",
            lines=(11,),
            fixed="import torch\nimport triton\n\n\n@triton.jit\n"
            "def kernel(x, out, n):\n    pass\n\n\ndef doubled(x: torch.Tensor):\n"
            "    out = torch.empty(x.numel(), dtype=x.dtype, device=x.device)\n"
            "    kernel[(x.numel(),)](x, out, x.numel())\n    return out\n",
        ),
        Bad(
            "import torch\nimport torch.distributed as dist\n\n\n"
            "def gathered(x: torch.Tensor, size):\n"
            "    found = [torch.zeros(3) for _ in range(size)]\n"
            "    dist.all_gather(found, torch.ones(3, device=x.device))\n    return found\n",
            lines=(6,),
            fixed="import torch\nimport torch.distributed as dist\n\n\n"
            "def gathered(x: torch.Tensor, size):\n"
            "    found = [torch.zeros(3, device=x.device) for _ in range(size)]\n"
            "    dist.all_gather(found, torch.ones(3, device=x.device))\n    return found\n",
        ),
        Bad(
            """\
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Embedding(1000, 64).to(device)
prompt = torch.randint(1000, (1, 8))
print(model(prompt).shape)
""",
            lines=(6,),
            fixed="""\
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Embedding(1000, 64).to(device)
prompt = torch.randint(1000, (1, 8), device=device)
print(model(prompt).shape)
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x):
        return self.a(x)

def main(device):
    net = Net().to(device)
    clip = torch.randn(2, 8)
    return net(clip)
""",
            lines=(14,),
            fixed="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x):
        return self.a(x)

def main(device):
    net = Net().to(device)
    clip = torch.randn(2, 8, device=device)
    return net(clip)
""",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def f(self, other):\n"
            "        a = self.b @ other.c()\n        return a + torch.ones(a.shape[0])\n",
            lines=(8,),
            fixed="import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def f(self, other):\n        a = self.b @ other.c()\n"
            "        return a + torch.ones(a.shape[0], device=a.device)\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Rows(nn.Module):\n"
            "    def __init__(self, sizes):\n        super().__init__()\n"
            "        self.layers = nn.ModuleList()\n        for n in sizes:\n"
            "            self.layers.append(nn.Linear(n, n))\n\n"
            "    def forward(self, x):\n        for layer in self.layers:\n"
            "            x = layer(x) + layer(torch.ones(3, 4))\n        return x\n",
            lines=(14,),
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def forward(self, x: torch.Tensor, rows=None):\n        if rows is None:\n"
            "            rows = torch.empty(0)\n        return x * rows if len(rows) else x\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Scale(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.register_buffer('scale', torch.ones(n))\n\n"
            "    def forward(self, n):\n"
            "        return self.scale ** (torch.arange(0, n, 1) - n // 2).to(self.scale)\n"
        ),
        Good(
            "import torch\n\n\ndef packed(rows: torch.Tensor, bits: int):\n"
            "    out = torch.zeros(len(rows), 8)\n    out[:, 0] += rows[:, 0] << bits\n"
            "    return out\n\n\n"
            "def made(n):\n    return packed(torch.randint(0, 4, (n, 8)), 4)\n\n\n"
            "def asked(x: torch.Tensor):\n    return torch.zeros(3, device=x.device)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.proj = nn.Linear(n, n)\n"
            "        self.proj.weight.data += torch.ones(n, n)\n\n"
            "    def forward(self, x):\n        scale = torch.tensor(2.0)\n"
            "        order = torch.arange(x.shape[0]).flip(0)\n"
            "        return self.proj(x)[order] * scale\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def forward(self, x: torch.Tensor, offset):\n        if isinstance(offset, int):\n"
            "            offset = torch.full((1,), offset)\n        return x + offset\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n"
            "    def forward(self, x: torch.Tensor):\n        with torch.device(x.device):\n"
            "            steps = torch.arange(x.shape[1])\n"
            "        later = torch.ones(x.shape[1]).to(x)\n        return x + steps + later\n"
        ),
        Good(
            "import torch\n\n\ndef table(rows: torch.Tensor, n: int):\n"
            "    return rows + torch.arange(n)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Patches(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.proj = nn.Conv2d(1, n, 2)\n        self.rows = self.shape_of(n)\n\n"
            "    def shape_of(self, n):\n        return self.proj(torch.randn(1, 1, n, n)).shape\n"
        ),
        Good(
            "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n\n\n"
            "class Walks(nn.Module):\n    def loader(self, rows):\n"
            "        return DataLoader(rows, collate_fn=self.sampled)\n\n"
            "    def sampled(self, rows):\n        return self.walked(torch.tensor(rows))\n\n"
            "    def walked(self, rows: torch.Tensor):\n"
            "        return torch.stack([rows, torch.randint(0, 9, (rows.size(0),))])\n"
        ),
        Good(
            "import torch\nimport torch.distributed as dist\n\n\ndef counts(rank, size):\n"
            "    own = torch.tensor([rank, 1])\n"
            "    found = [torch.tensor([0, 0]) for _ in range(size)]\n"
            "    if dist.get_backend() == 'nccl':\n        own = own.cuda()\n"
            "        found = [each.cuda() for each in found]\n"
            "    dist.all_gather(found, own)\n    return found\n"
        ),
        Good(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x):
        return self.a(x)

if __name__ == "__main__":
    clip = torch.randn(2, 8)
    net = Net()
    print(net(clip) - clip)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        made = (*made_without_device(module), *left_to_its_default(module))
        for function in makers_and_callers(module, made):
            if only_sets_up(module, function):
                continue
            places = module.places(function)
            for meeting in places.meetings:
                inner = module.function_of(meeting.node) or function
                found = out_of_place(module, inner, meeting, Where.DEFAULT)
                found = found or made_for_argument(module, inner, meeting)
                if found is None or may_have_moved(module, meeting):
                    continue
                one = found[0]
                other_fault = is_module(module, function, one) or only_binds_a_name(module, one)
                if not other_fault and one.by is not None and one.by not in reported:
                    reported.add(one.by)
                    yield self._reported(module, inner, places, meeting, *found)

    def _reported(
        self,
        module: Module,
        function: FunctionNode,
        places: FunctionPlaces,
        meeting: Meeting,
        made: Place,
        there: Place,
    ) -> Finding:
        assert made.by is not None
        line, elsewhere = getattr(meeting.node, "lineno", 0), module.gpu_made_default()
        return self.finding(
            module,
            made.by,
            f"`{one_line(module, made.by)}` is on the default device, and line {line} "
            f"{_takes(meeting)} {described(there)}{unless(elsewhere)}",
            severity=Severity.NOTE if elsewhere else weight(module, function, meeting, there),
            trail=(
                (made.by, "made without a device"),
                *caller_step(module, function, there),
                (meeting.node, f"meets a tensor {described(there)}"),
            ),
            fixes=(made_there(module, function, places, made.by, there),),
            told=not elsewhere and is_worth_telling(module, function, meeting, made, there),
        )


def _takes(meeting: Meeting) -> str:
    to_module = meeting.operation == MODEL
    return "gives it to a module" if to_module else "uses it together with a tensor"
