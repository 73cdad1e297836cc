from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.explained import is_explained
from tensortrail.rules.devices.shared.meetings.beside_others import Evidence, evidence_of
from tensortrail.rules.devices.shared.meetings.described import described
from tensortrail.rules.devices.shared.meetings.other_factories import (
    may_be_given_a_device,
)
from tensortrail.rules.devices.shared.meetings.returned_or_filled import is_filled
from tensortrail.rules.devices.shared.meetings.surely_beside_others import (
    is_for_the_cpu,
    is_sure,
    may_fail,
)
from tensortrail.rules.devices.shared.meetings.typed_like import typed_like
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES
from tensortrail.rules.devices.shared.written_for.used_here import is_used_on_a_gpu
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class MadeBesideOthers(Rule):
    """A tensor is made without a device and used together with tensors that have one.

    ## What it does
    Reports, as a note, a factory of torch without `device`, if two things show that one is missing.

    The first is one of these:

    - all other factories of the function are given a device;
    - the tensor has the dtype or shape of another one (`torch.zeros(n, dtype=x.dtype)`).

    The second is one of these:

    - an operation or call takes the tensor together with one that is wherever the caller put it;
    - the function returns the tensor.

    An error if an operation combines them and the file itself uses the class or function on a GPU.
    Whatever it meets, a note for a tensor that takes the dtype of another one and not its device.

    Only reported if the rule is selected (`--select DEV532`), where it is less certain:

    - the tensor is only returned, or is an index by its name;
    - the code works on the CPU: a data set, a collator, an export or a conversion.

    Not reported: a tensor without a dimension, or one that is moved, copied or used as an index; a
    factory under a condition about devices or types; and an object that is being set up.

    ## Why is this bad?
    The tensor is on the default device, usually the CPU. As soon as a caller passes tensors on a
    GPU, an operation that combines them raises.

    ## Fix safety
    Unsafe: if several devices are at hand, another one may be meant.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV532"
    name = "made-beside-others"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    notes = False
    confidence = Confidence.MEDIUM
    explains = ("DEV526", "DEV528", "DEV534", "DEV552", "DEV668", "NEW305")
    triggers = tuple(("torch", name) for name in FACTORIES)
    shape = (
        pattern(
            rb"\b(?:%s)(?:\s+as\s|\s*\((?![^()\n#'\"]*\bdevice\s*=[^=]))"
            % "|".join(FACTORIES).encode()
        ),
    )
    bad = (
        Bad(
            "import torch\n\n\ndef generated(flow, z: torch.Tensor, n: int, device):\n"
            "    z = z.to(device)\n    noise = torch.rand(n, device=device)\n"
            "    start = torch.zeros(n)\n    return flow(z, start, noise)\n",
            lines=(7,),
            fixed="import torch\n\n\n"
            "def generated(flow, z: torch.Tensor, n: int, device):\n"
            "    z = z.to(device)\n    noise = torch.rand(n, device=device)\n"
            "    start = torch.zeros(n, device=device)\n    return flow(z, start, noise)\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Tiled(nn.Module):\n"
            "    def forward(self, x):\n        y = torch.zeros(4, len(x), dtype=x.dtype)\n"
            "        for i in range(4):\n            y[i] = x[i]\n        return y\n",
            lines=(7,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Tiled(nn.Module):\n"
            "    def forward(self, x):\n"
            "        y = torch.zeros(4, len(x), dtype=x.dtype, device=x.device)\n"
            "        for i in range(4):\n            y[i] = x[i]\n        return y\n",
        ),
        Bad(
            "import torch\n\n\ndef filled(q: torch.Tensor):\n    rows = q.size(0)\n"
            "    out = torch.empty(rows, 4)\n    torch.ops.own.fill(q, out)\n    return out\n",
            lines=(6,),
            fixed="import torch\n\n\ndef filled(q: torch.Tensor):\n    rows = q.size(0)\n"
            "    out = torch.empty(rows, 4, device=q.device)\n"
            "    torch.ops.own.fill(q, out)\n    return out\n",
        ),
        Bad(
            "import torch\n\n\ndef errors(match, scores: torch.Tensor, limit: float):\n"
            "    limits = torch.tensor([limit], dtype=scores.dtype)\n"
            "    found, _ = match(scores)\n    return found > limits\n",
            lines=(5,),
            fixed="import torch\n\n\ndef errors(match, scores: torch.Tensor, limit: float):\n"
            "    limits = torch.tensor([limit], dtype=scores.dtype, device=scores.device)\n"
            "    found, _ = match(scores)\n    return found > limits\n",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef generated(flow, z: torch.Tensor, n: int, device):\n"
            "    z = z.to(device)\n    noise = torch.rand(n, device=device)\n"
            "    start = torch.zeros(n)\n    return flow(z, start.to(device), noise)\n"
        ),
        Good(
            "import torch\n\n\ndef logged(log, z: torch.Tensor, n: int):\n"
            "    noise = torch.rand(n, device=z.device)\n    sizes = torch.ones(n)\n"
            "    log.info(z, sizes)\n    return noise\n"
        ),
        Good(
            "import torch\n\n\ndef indexed(flow, z: torch.Tensor, n: int):\n"
            "    noise = torch.rand(n, device=z.device)\n    order = torch.randperm(n)\n"
            "    return flow(z[order], noise, 2)\n"
        ),
        Good(
            "import torch\n\n\ndef packed(flow, z: torch.Tensor, n: int):\n"
            "    noise = torch.rand(n, device=z.device)\n    if z.device.type == 'cpu':\n"
            "        z = flow(z, torch.ones(n))\n    return z, noise\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\n"
            "def padded(model: nn.Module, x: torch.Tensor, n):\n"
            "    own = torch.zeros(n, dtype=model.weight.dtype)\n"
            "    ends = torch.tensor([n], dtype=x.dtype)\n    x = x.cpu()\n"
            "    return own.to(x), model(ends.to(x.device))\n"
        ),
        Good(
            """\
import torch

def paused(envs, states, headings):
    kept = [each for each in envs if not each.done]
    return states[kept], headings[kept]

def evaluate(envs, count, device: torch.device):
    states = torch.zeros(count, 8, device=device)
    masks = torch.zeros(count, 1, device=device)
    headings = torch.zeros(count, 3)
    states, headings = paused(envs, states, headings)
    return states, masks, headings.tolist()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*FACTORIES):
            function = module.function_of(call)
            if function is None or sets_up(function) or not may_be_given_a_device(module, call):
                continue
            evidence = evidence_of(module, function, call)
            if evidence is not None and not is_explained(module, call):
                yield self._reported(module, function, call, evidence)
            elif evidence is None:
                yield from self._typed_only(module, function, call)

    def _reported(
        self, module: Module, function: FunctionNode, call: ast.Call, why: Evidence
    ) -> Finding:
        severity = Severity.NOTE
        if is_sure(module, function, call, why):
            certain = why.beside is not None and is_used_on_a_gpu(module, call)
            severity = Severity.ERROR if certain else Severity.WARNING
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` is on the default device, and {_use(why)}; "
            f"{_reason(module, why)}",
            severity=severity,
            told=may_fail(module, function, call, why),
            trail=(
                (call, "made without a device"),
                *((each, "given a device") for each in why.others[:2]),
                *([(why.beside[0], f"meets a tensor {described(why.beside[1])}")]
                  if why.beside else []),
            ),
            fixes=(_fix(module, function, call, why),),
        )  # fmt: skip

    def _typed_only(
        self, module: Module, function: FunctionNode, call: ast.Call
    ) -> Iterator[Finding]:
        like = typed_like(module, function, call)
        if like is None or is_for_the_cpu(module, function, call):
            return
        if is_filled(module, function, call) or is_explained(module, call):
            return
        yield self.finding(
            module,
            call,
            f"`{one_line(module, call)}` has the dtype of `{module.text(like)}`, but not its "
            "device: it is on the default device",
            severity=Severity.NOTE,
            told=True,
            fixes=(_fix(module, function, call, Evidence(like, True, (), None)),),
        )


def _use(why: Evidence) -> str:
    if why.beside is None:
        return "it is returned"
    line = getattr(why.beside[0], "lineno", 0)
    return f"line {line} uses it together with a tensor {described(why.beside[1])}"


def _reason(module: Module, why: Evidence) -> str:
    if why.model is not None:
        return f"it is made like `{module.text(why.model)}`, whose device it does not take"
    lines = " and ".join(f"line {each.lineno}" for each in why.others[:2])
    count = len(why.others)
    others = "another factory" if count == 1 else f"{count} other factories"
    return f"{others} of this function {'is' if count == 1 else 'are'} given one, see {lines}"


def _fix(module: Module, function: FunctionNode, call: ast.Call, why: Evidence) -> Fix | None:
    device = _device(module, function, why)
    if module.qualified(call.func).endswith("Tensor"):
        return None
    edit = device_given(module, call, device)
    return module.fix(f"make it on `{device}`", Safety.UNSAFE, edit) if edit else None


def _device(module: Module, function: FunctionNode, why: Evidence) -> str:
    """An expression for the device that has a value from the first line on."""
    given = parameter_names(function)
    if why.model is not None:
        text = module.text(why.model)
        return f"{text}.device" if text.partition(".")[0] in given else ""
    for other in why.others:
        said = next(module.text(each.value) for each in other.keywords if each.arg == "device")
        if said.partition(".")[0] in given and "(" not in said:
            return said
    return ""
