from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._accepted import accepting, is_maker, parameters
from tensortrail.rules.devices._customs import is_explained
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode

_OF_TENSORS = frozenset({"shape", "dtype", "size"})
_OWN = frozenset({"self.device", "self._device", "accelerator.device", "self.accelerator.device"})


class DeviceNotPassedOn(Rule):
    """A function has a device at hand, and makes a tensor without it.

    ## What it does
    Notes calls that accept `device` and are not given it, in a function that has a device for the
    purpose: a parameter or variable `device`, `self.device`, or that of a tensor whose shape or
    dtype the call takes. The call is a factory of torch, or a function or class of the project.

    Nothing is reported for a result that is moved, indexed with, read out or copied, for one
    without a dimension, and while an object is set up without a device.

    ## Why is this bad?
    What is made lies on the default device. In a function that works on another one it meets
    tensors of that.

    ## Fix safety
    No fix is offered: which device is meant can differ from call to call.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV528"
    name = "device-not-passed-on"
    severity = Severity.NOTE
    confidence = Confidence.MEDIUM
    default = False
    triggers = (("torch", "device"), ("torch", "dtype"), ("torch", "shape"), ("torch", "size"))
    bad = (
        Bad(
            "import torch\n\n\ndef table(n, device):\n"
            "    rows = torch.arange(n).float()\n"
            "    return rows.outer(torch.ones(n, device=device))\n",
            lines=(5,),
            instead="""\
import torch


def table(n, device):
    rows = torch.arange(n, device=device).float()
    return rows.outer(torch.ones(n, device=device))
""",
        ),
        Bad(
            "import torch\n\n\ndef steps(n, device=None):\n"
            "    return torch.arange(n, device=device)\n\n\n"
            "def table(n, x, device):\n    return x.to(device) * steps(n)\n",
            lines=(9,),
        ),
        Bad(
            "import torch\n\n\ndef padded(x, n):\n"
            "    return torch.cat([x, torch.zeros(n, dtype=x.dtype)])\n",
            lines=(5,),
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef padded(x, n):\n"
            "    rows = torch.zeros(n, dtype=x.dtype).to(x)\n    return torch.cat([x, rows])\n"
        ),
        Good(
            "import torch\n\n\ndef order(x, n, device):\n"
            "    return x.to(device)[torch.randperm(n)]\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            at_hand = _device_at_hand(module, function)
            for call in accepting(module, function, "device"):
                said = at_hand or _modelled_on(module, call)
                if said and not is_explained(module, call):
                    yield self._reported(module, call, said)

    def _reported(self, module: Module, call: ast.Call, said: str) -> Finding:
        what = "makes a tensor" if is_maker(module, call) else "accepts `device`"
        return self.finding(
            module, call, f"this {what} and is given no device; `{said}` is at hand"
        )


def _device_at_hand(module: Module, function: FunctionNode) -> str:
    names = [each.arg for each in parameters(function)]
    names += [
        each.id for each in module.nodes(ast.Name, function) if isinstance(each.ctx, ast.Store)
    ]
    for name in names:
        if name == "device":
            return name
    texts = (module.text(each) for each in module.nodes(ast.Attribute, function))
    return next((each for each in texts if each in _OWN), "")


def _modelled_on(module: Module, call: ast.Call) -> str:
    """The device of the tensor whose shape or dtype a factory takes."""
    if not is_maker(module, call):
        return ""
    given = [*call.args, *(each.value for each in call.keywords)]
    for argument in given:
        for node in (argument, *module.nodes(ast.Attribute, argument)):
            if (
                isinstance(node, ast.Attribute)
                and node.attr in _OF_TENSORS
                and isinstance(node.value, (ast.Name, ast.Attribute))
                and not module.qualified(node.value).startswith(("torch", "numpy"))
            ):
                return f"{module.text(node.value)}.device"
    return ""
