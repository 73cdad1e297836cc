from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.places import What
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Kind

_OF_TENSORS = frozenset({"backward", "is_cuda", "shape", "requires_grad", "detach", "data_ptr"})
_OF_CUDA = frozenset({"torch.device", "torch.cuda.set_device"})


class NumberAsDevice(Rule):
    """The number from `get_device()` is used as a device, and is -1 on the CPU.

    ## What it does
    Reports `.get_device()` of a tensor where a device is needed: in `.to(...)`, `.cuda(...)`,
    `device=` and `torch.device(...)`, directly or through a variable.

    Only reported if the rule is selected (`--select DEV535`): packages that write `.cuda()` nearly
    as often as they name a device, and programs that never ask whether there is a GPU and let
    nobody choose the CPU.

    Not reported: code under a condition about the number or about devices.

    ## Why is this bad?
    On the CPU, torch raises "Device index must not be negative": `get_device()` is the number of a
    GPU, and -1 for a tensor on the CPU. `x.device` works everywhere.

    ## Fix safety
    Safe: on a GPU, `x.device` is the device with that number.

    ## References
    - pytorch documentation, `torch.Tensor.get_device`
    - NVIDIA/NeMo, "fix cpu loss"
    """

    code = "DEV535"
    name = "number-as-device"
    severity = Severity.WARNING
    warns = False
    notes = False
    triggers = (("torch", "get_device"),)
    bad = (
        Bad(
            "import torch\n\n\ndef noise(x: torch.Tensor, n: int):\n"
            "    return torch.randn(n, device=x.get_device())\n",
            lines=(5,),
            fixed="import torch\n\n\ndef noise(x: torch.Tensor, n: int):\n"
            "    return torch.randn(n, device=x.device)\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Gate(nn.Module):\n"
            "    def forward(self, x):\n        drop = torch.empty(x.shape).bernoulli_(0.5)\n"
            "        return x * drop.to(x.get_device())\n",
            lines=(8,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Gate(nn.Module):\n"
            "    def forward(self, x):\n        drop = torch.empty(x.shape).bernoulli_(0.5)\n"
            "        return x * drop.to(x.device)\n",
        ),
        Bad(
            "import torch\n\n\ndef joined(x: torch.Tensor, y: torch.Tensor):\n"
            "    number = x.get_device()\n    return torch.cat([x, y.to(number)])\n",
            lines=(5,),
            instead="import torch\n\n\ndef joined(x: torch.Tensor, y: torch.Tensor):\n"
            "    return torch.cat([x, y.to(x.device)])\n",
        ),
        Bad(
            "import torch\n\n\ndef step(model, batch, scale):\n    loss = model(batch)\n"
            "    loss.backward(scale.to(loss.get_device()))\n",
            lines=(6,),
            fixed="import torch\n\n\ndef step(model, batch, scale):\n    loss = model(batch)\n"
            "    loss.backward(scale.to(loss.device))\n",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef noise(x: torch.Tensor, n: int):\n"
            "    if x.is_cuda:\n        return torch.randn(n, device=x.get_device())\n"
            "    return torch.randn(n)\n"
        ),
        Good(
            "import torch\n\n\ndef joined(x: torch.Tensor, y: torch.Tensor):\n"
            "    number = x.get_device()\n    if number < 0:\n        return torch.cat([x, y])\n"
            "    return torch.cat([x, y.to(number)])\n"
        ),
        Good("import torch\n\n\ndef key(x: torch.Tensor):\n    return x.get_device(), x.shape\n"),
        Good(
            "import torch\n\n\nclass Runner:\n    def get_device(self):\n"
            "        return torch.device('cpu')\n\n    def run(self, x):\n"
            "        return x.to(self.get_device())\n"
        ),
        Good(
            "import torch\n\n\ndef joined(x: torch.Tensor, y: torch.Tensor):\n"
            "    number = x.get_device() if x.is_cuda else 'cpu'\n    return y.to(number)\n"
        ),
        Good(
            "import torch\n\n\ndef joined(x: torch.Tensor, y: torch.Tensor):\n"
            "    number = x.get_device()\n    number = None if number == -1 else number\n"
            "    return torch.cat([x, torch.zeros_like(y, device=number)])\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or not any(module.calls("get_device")):
            return
        reported: set[ast.AST] = set()
        for use, said in _devices(module):
            asked = _asked(module, said)
            if asked is None or asked in reported or _is_decided(module, said, asked, use):
                continue
            reported.add(asked)
            owner = module.text(asked.func.value) if isinstance(asked.func, ast.Attribute) else ""
            yield self.finding(
                module,
                asked,
                f"`{owner}.get_device()` is -1 if `{owner}` is on the CPU, and torch refuses a "
                f"negative number: `{owner}.device` works everywhere",
                severity=_weight(module),
                trail=[(use, "it is used as a device")] if asked is not said else (),
                fixes=[_fix(module, asked, owner, use)] if asked is said else (),
            )


def _weight(module: Module) -> Severity | None:
    """A program that always uses a GPU never has the number."""
    always = module.is_for_current_gpu() or not module.may_use_cpu()
    return Severity.NOTE if always else None


def _devices(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Calls that are given a device, with it."""
    for call in module.nodes(ast.Call):
        said = said_device(module, call)
        if said is not None:
            yield call, said
    for call in module.calls("cuda", *_OF_CUDA):
        if call.args:
            yield call, call.args[0]


def _asked(module: Module, said: ast.expr) -> ast.Call | None:
    """The call of `get_device()` of a tensor that this is, or that the name was assigned from."""
    origins = [said] if isinstance(said, ast.Call) else module.value_of(said).origins
    found = [each for each in origins if _is_number(module, each)]
    one = found[0] if found and len(found) == len(origins) else None
    return one if isinstance(one, ast.Call) else None


def _is_number(module: Module, node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get_device"
        and not node.args
        and _is_tensor(module, node.func.value)
    )


def _is_tensor(module: Module, owner: ast.expr) -> bool:
    if module.value_of(owner).is_only(Kind.TENSOR, Kind.PARAMETER):
        return True
    function = module.function_of(owner)
    held = module.places(function).seen.get(owner) if function is not None else None
    known = held is not None and held.what is What.TENSOR
    return known or _is_used_as_one(module, function, module.text(owner))


def _is_used_as_one(module: Module, function: FunctionNode | None, name: str) -> bool:
    """The function, or the module around it, asks it for what tensors have."""
    return any(
        each.attr in _OF_TENSORS and module.text(each.value) == name
        for each in module.nodes(ast.Attribute, function)
    )


def _is_decided(module: Module, said: ast.expr, asked: ast.Call, use: ast.Call) -> bool:
    """A condition about devices leads there, or the number is tested."""
    words = ["cuda", "device", "gpu", "cpu", "get_device"]
    if isinstance(said, ast.Name):
        words.append(said.id)
    if any(guard.mentions(*words) for node in (use, asked) for guard in module.guards_of(node)):
        return True
    around = (up for up in module.ancestors(asked))
    return any(isinstance(up, (ast.IfExp, ast.Try)) for up in around)


def _fix(module: Module, asked: ast.Call, owner: str, use: ast.Call) -> Fix | None:
    if module.text(use.func).endswith((".cuda", "set_device")):
        return None  # these take no device of the CPU
    return module.fix(
        f"use `{owner}.device`", Safety.SAFE, module.replace(asked, f"{owner}.device")
    )
