from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.devices.shared.calls.alike import device_of
from tensortrail.rules.devices.shared.calls.customs import is_factory_of_torch, named
from tensortrail.rules.devices.shared.calls.explained import is_explained
from tensortrail.rules.devices.shared.calls.left_layers import left_layers
from tensortrail.rules.devices.shared.calls.twins import is_moved_there_later, unlike_their_twins
from tensortrail.rules.devices.shared.meetings.company import taken_beside
from tensortrail.rules.devices.shared.meetings.indexing import only_indexes
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.shared.named_for_cpu import is_named_for_the_cpu
from tensortrail.rules.shared.sentences import one_line

_TWO = """\
import torch


def spread(x, rows, columns, out):
    left = torch.ones(rows, dtype=x.dtype, device=x.device)
    top = torch.ones(columns, dtype=x.dtypeDEVICE)
    return out.combine(left, top)
"""


class TwinWithoutDevice(Rule):
    """Of two similar calls, one is given a device and the other is not.

    ## What it does
    Compares the calls of one function or class inside a function. Reports, as a note, the call
    without a device, if

    - the two set the same parameters except for the device, and are within two statements of each
      other or pass some equal values: `torch.zeros(n, dtype=dtype, device=device)` and
      `torch.ones(n, dtype=dtype)`;
    - they are the same call in two branches; or
    - two or more other calls, and all of them, pass the same device; the same of the layers of
      torch that have weights, whichever they are.

    Two calls of `torch.as_tensor`, which leaves a tensor where it is, have to be in one literal or
    call or in neighbouring lines.

    By default, only the third case is reported, and only for layers. All others are reported if the
    rule is selected (`--select DEV534`), as is a result that is later moved to the same device, is
    only an index, or is not combined with a tensor on a device.

    Not reported: calls under different conditions about devices or types; a result that is moved,
    copied or an index; calls that use the device of their argument (`zeros_like`); and functions in
    which most such calls have no device.

    ## Why is this bad?
    The result of one call is on the default device, usually the CPU, and the result of the similar
    call on the caller's device. An operation that combines them raises.

    ## Fix safety
    Unsafe: the device may be meant for only one of the two.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV534"
    name = "twin-without-device"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    notes = False
    confidence = Confidence.MEDIUM
    explains = ("DEV526", "DEV528", "DEV552")
    triggers = (("torch", "device="), ("torch", "device ="))
    bad = (
        Bad(
            _TWO.replace("DEVICE", ""),
            lines=(6,),
            fixed=_TWO.replace("DEVICE", ", device=x.device"),
        ),
        Bad(
            "from torch import nn\n\n\nclass Gated(nn.Module):\n"
            "    def __init__(self, n, bias=True, device=None):\n        super().__init__()\n"
            "        self.up = nn.Linear(n, 4 * n, bias=bias, device=device)\n"
            "        self.down = nn.Linear(4 * n, n, bias=bias)\n",
            lines=(8,),
            fixed="from torch import nn\n\n\nclass Gated(nn.Module):\n"
            "    def __init__(self, n, bias=True, device=None):\n        super().__init__()\n"
            "        self.up = nn.Linear(n, 4 * n, bias=bias, device=device)\n"
            "        self.down = nn.Linear(4 * n, n, bias=bias, device=device)\n",
        ),
        Bad(
            "import torch\n\n\ndef made(x, n, causal, out):\n    if causal:\n"
            "        bias = torch.full((n, n), -1.0, device=x.device)\n    else:\n"
            "        bias = torch.full((n, n), 0.0)\n    return out.combine(x, bias)\n",
            lines=(8,),
            fixed="import torch\n\n\ndef made(x, n, causal, out):\n    if causal:\n"
            "        bias = torch.full((n, n), -1.0, device=x.device)\n    else:\n"
            "        bias = torch.full((n, n), 0.0, device=x.device)\n"
            "    return out.combine(x, bias)\n",
        ),
        Bad(
            "import torch\n\n\ndef matrices(options, x):\n    return {\n"
            '        "center": torch.as_tensor(options.center, device=x.device, dtype=x.dtype),\n'
            '        "scale": torch.as_tensor(options.scale, dtype=x.dtype),\n    }\n',
            lines=(7,),
            fixed="import torch\n\n\ndef matrices(options, x):\n    return {\n"
            '        "center": torch.as_tensor(options.center, device=x.device, dtype=x.dtype),\n'
            '        "scale": torch.as_tensor(options.scale, dtype=x.dtype, device=x.device),\n'
            "    }\n",
        ),
        Bad(
            "import torch\n\n\ndef spec_of(x, boxes):\n    if isinstance(x, torch.Tensor):\n"
            "        if x.is_floating_point():\n"
            "            return boxes.Free(shape=x.shape, dtype=x.dtype, device=x.device)\n"
            "        return boxes.Free(shape=x.shape, dtype=x.dtype)\n    return None\n",
            lines=(8,),
            fixed="import torch\n\n\ndef spec_of(x, boxes):\n"
            "    if isinstance(x, torch.Tensor):\n        if x.is_floating_point():\n"
            "            return boxes.Free(shape=x.shape, dtype=x.dtype, device=x.device)\n"
            "        return boxes.Free(shape=x.shape, dtype=x.dtype, device=x.device)\n"
            "    return None\n",
        ),
        Bad(
            "import torch\n\n\ndef started(schedule, steps, sigmas, device, **options):\n"
            "    if steps is not None:\n"
            "        schedule.start(steps=steps, device=device, **options)\n"
            "    elif sigmas is not None:\n        schedule.start(sigmas=sigmas, **options)\n"
            "    else:\n        schedule.start(50, device=device, **options)\n"
            "    return torch.as_tensor(schedule.steps)\n",
            lines=(8,),
            fixed="import torch\n\n\ndef started(schedule, steps, sigmas, device, **options):\n"
            "    if steps is not None:\n"
            "        schedule.start(steps=steps, device=device, **options)\n"
            "    elif sigmas is not None:\n"
            "        schedule.start(sigmas=sigmas, **options, device=device)\n"
            "    else:\n        schedule.start(50, device=device, **options)\n"
            "    return torch.as_tensor(schedule.steps)\n",
        ),
        Bad(
            "import torch\n\n\ndef unload(pipe, Blank, device: torch.device, dtype):\n"
            "    pipe.first = Blank(device=device, dtype=dtype)\n"
            "    pipe.second = Blank(device=device, dtype=dtype)\n"
            "    if pipe.alone:\n        pipe.third = Blank()\n",
            lines=(8,),
        ),
        Bad(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, sizes, start, tied):\n"
            "        super().__init__()\n"
            "        self.words = nn.Embedding(sizes.words, sizes.wide, device=start)\n"
            "        self.inner = nn.Linear(sizes.wide, sizes.wide, device=start)\n"
            "        if not tied:\n            self.out = nn.Linear(sizes.wide, sizes.words)\n",
            lines=(10,),
            fixed="from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, sizes, start, tied):\n        super().__init__()\n"
            "        self.words = nn.Embedding(sizes.words, sizes.wide, device=start)\n"
            "        self.inner = nn.Linear(sizes.wide, sizes.wide, device=start)\n"
            "        if not tied:\n"
            "            self.out = nn.Linear(sizes.wide, sizes.words, device=start)\n",
        ),
    )
    good = (
        Good(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, wide, start, rest):\n"
            "        super().__init__()\n"
            "        self.words = nn.Embedding(9, wide, device=start)\n"
            "        self.inner = nn.Conv1d(wide, wide, 1, device=rest)\n"
            "        self.out = nn.Linear(wide, 9)\n        self.drop = nn.Dropout(0.1)\n\n"
            "    def added(self, wide, start):\n"
            "        self.norm = nn.LayerNorm(wide, elementwise_affine=False)\n"
            "        self.first = nn.Linear(wide, wide, device=start)\n"
            "        self.last = nn.Linear(wide, 9, device=start)\n"
        ),
        Good(
            "import torch\n\n\ndef results(inputs, outputs, keep, move, device: torch.device):\n"
            "    if keep:\n        return move(outputs, device=device)\n"
            "    return move(inputs, torch.device('cpu'))\n"
        ),
        Good(
            "import torch\n\n\ndef unload(pipe, Blank, device: torch.device, dtype):\n"
            "    pipe.first = Blank(device=device, dtype=dtype)\n"
            "    pipe.second = Blank(device=device, dtype=dtype)\n"
            "    if pipe.alone:\n        pipe.third = Blank(device=device, dtype=dtype)\n"
        ),
        Good(
            "import torch\n\n\ndef sent(counts, starts, copied, device: torch.device, buffer):\n"
            "    first = copied(counts, device=device)\n"
            "    copied(starts, out=buffer)\n    return first, buffer\n"
        ),
        Good(
            "import torch\n\n\ndef kept(q, sums, tops, out):\n"
            "    if sums is None:\n        made = torch.empty\n"
            "        sums = made((3, 4), device=q.device)\n    if tops is None:\n"
            "        made = torch.empty\n        tops = made((3, 4), device=q.device)\n"
            "    if out is None:\n        made = torch.empty_like\n        out = made(q)\n"
            "    return sums, tops, out\n"
        ),
        Good(
            "import torch\n\n\ndef made(Row, x, out):\n"
            "    first = Row(x.shape, device=x.device)\n"
            "    second = Row(x.dtype, x.shape, device=x.device)\n"
            "    return Row(), first, second, out\n"
        ),
        Good(
            "import torch\n\n\ndef made(x, n, out):\n    if x.device.type == 'cuda':\n"
            "        bias = torch.zeros(n, dtype=x.dtype, device=x.device)\n    else:\n"
            "        bias = torch.zeros(n, dtype=x.dtype)\n    return out.combine(x, bias)\n"
        ),
        Good(
            "import torch\n\n\ndef made(x, n, out):\n"
            "    left = torch.arange(n, device=x.device)\n    top = torch.arange(n)\n"
            "    return out.combine(x, left, top.to(x))\n"
        ),
        Good(
            "import torch\n\n\ndef made(x, n, out):\n"
            "    left = torch.rand(n, dtype=x.dtype, device=x.device)\n"
            "    if torch.rand(1) < 0.5:\n        return x\n    return out.combine(x, left)\n"
        ),
        Good(
            "import torch\n\n\ndef made(x, n, out):\n"
            "    left = torch.ones(n, device=x.device)\n    out.start(x)\n    out.stop(left)\n"
            "    out.start(left)\n    counts = torch.ones(2 * n)\n    return out.save(counts)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        layers = dict(left_layers(module))
        for call, twin in {**dict(unlike_their_twins(module)), **layers}.items():
            if is_explained(module, call, (twin,)) or _is_given_by_position(module, call):
                continue
            if "out" not in named(call):
                yield self._reported(module, call, twin, call in layers)

    def _reported(self, module: Module, call: ast.Call, twin: ast.Call, is_layer: bool) -> Finding:
        device = device_of(twin)
        said = module.text(device) if device is not None else ""
        plain = is_beforehand(module, call) or is_moved_there_later(module, call, said)
        plain = plain or is_named_for_the_cpu(module, call) or only_indexes(module, call)
        plain = plain or not _goes_with_another(module, call)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call.func)}` is called without a device, but line {twin.lineno} "
            f"makes the same kind of call with `device={said}`",
            severity=Severity.NOTE if plain else None,
            trail=((twin, "given a device"),),
            told=is_layer and not plain,
            fixes=(_fix(module, call, said),),
        )


def _goes_with_another(module: Module, call: ast.Call) -> bool:
    """An operation or a call takes it together with what lies on a device; what makes tensors is
    asked only where its places are known."""
    function = module.function_of(call)
    layer = module.kind_of(call) is Kind.MODULE
    if function is None or layer or not is_factory_of_torch(module, call):
        return True
    return taken_beside(module, function, module.places(function), call) is not None


def _is_given_by_position(module: Module, call: ast.Call) -> bool:
    """`move(parts, torch.device("cpu"))`."""
    return any(module.kind_of(each) in (Kind.DEVICE, Kind.DEVICE_STRING) for each in call.args)


def _fix(module: Module, call: ast.Call, said: str) -> Fix | None:
    """With a device that has a value from the first line of the function on."""
    function = module.function_of(call)
    names = parameter_names(function) if function else set()
    edit = device_given(module, call, said)
    if edit is None or said.partition(".")[0] not in names or "(" in said:
        return None
    return module.fix(f"pass `device={said}`", Safety.UNSAFE, edit)
