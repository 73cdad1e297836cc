from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.accepted import (
    accepting,
    accepting_by_name,
    device_at_hand,
    is_maker,
    is_read,
)
from tensortrail.rules.devices.shared.calls.customs import may_be_given_anything, named
from tensortrail.rules.devices.shared.calls.devices_unread import (
    devices_named,
    is_a_device,
    is_empty,
)
from tensortrail.rules.devices.shared.calls.explained import is_explained
from tensortrail.rules.devices.shared.calls.modelled_on import modelled_on
from tensortrail.rules.devices.shared.calls.neighbours import passes_parameter, takes_its_neighbour
from tensortrail.rules.devices.shared.named.options import unread_options
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_FORWARDED = re.compile("device|dtype|map_location|offload|generator")


_OF_LOADERS = frozenset({"torch_dtype", "device_map"})
"""What `from_pretrained` of a model takes."""


class DeviceNotPassedOn(Rule):
    """A function knows a device and makes a tensor without it.

    ## What it does
    Reports a call that accepts `device` and is not given one, of a factory of torch or of a
    function or class of the project. The function around it has a device: a parameter or variable
    `device`, `self.device`, or that of a tensor whose shape or dtype the call takes.

    Also reports, for a parameter such as `dtype`, `generator`, `map_location` or `offload_to_cpu`:

    - a function that never reads it, or never reads its `device`;
    - a call of a project function that accepts it and is not given it, and `from_pretrained`
      without the `device_map` or `torch_dtype` of the function;
    - a factory that is given the `device` of the function, but not its `dtype` or `generator`;
    - `x.to(device)`, if another move in the function takes the `dtype` too.

    Also reports a command-line option about devices that the program never reads.

    Not reported: a result that is moved, copied, read out or used as an index; a result without a
    dimension; and an object that is being set up.

    ## Why is this bad?
    The result is on the default device. If the function works on another one, the next operation
    that combines the two raises.

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
    triggers = (
        *("device", "dtype", "map_location", "offload", "generator"),
        ("torch", "shape"),
        ("torch", "size"),
    )
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
        Bad(
            "import torch\n\n\ndef moved(state, device):\n    kept = {}\n"
            "    for key, value in state.items():\n        kept[key] = torch.Tensor.clone(value)\n"
            "    return kept\n",
            lines=(4,),
        ),
        Bad(
            "import torch\n\n\ndef steps(n, dtype=None):\n"
            "    return torch.arange(n).to(dtype)\n\n\n"
            "def table(x, dtype):\n    return x.to(dtype) * steps(len(x))\n",
            lines=(9,),
        ),
        Bad(
            "import torch\n\n\ndef steps(n, device=None):\n"
            "    return torch.arange(n, device=device)\n\n\n"
            "def first(x):\n    return x.mul(steps(len(x), device=x.device))\n\n\n"
            "def second(y):\n    return y.mul(steps(y.shape[1]))\n",
            lines=(13,),
            instead="import torch\n\n\ndef steps(n, device=None):\n"
            "    return torch.arange(n, device=device)\n\n\n"
            "def first(x):\n    return x.mul(steps(len(x), device=x.device))\n\n\n"
            "def second(y):\n    return y.mul(steps(y.shape[1], device=y.device))\n",
        ),
        Bad(
            "import torch\n\n\ndef encoded(vae, x, y, device, dtype):\n"
            "    x = x.to(device, dtype=dtype)\n    y = y.to(device)\n    return vae(x, y)\n",
            lines=(6,),
            instead="import torch\n\n\ndef encoded(vae, x, y, device, dtype):\n"
            "    x = x.to(device, dtype=dtype)\n    y = y.to(device, dtype=dtype)\n"
            "    return vae(x, y)\n",
        ),
        Bad(
            "import torch\n\n\nclass Tables:\n    def grid(self, n, device=None):\n"
            "        return torch.arange(n, device=device)\n\n\n"
            "def first(tables, x, n):\n    return x + tables.grid(n=n, device=x.device)\n\n\n"
            "def second(tables, x, n, device):\n    x = x.to(device)\n"
            "    return x * tables.grid(n=n)\n",
            lines=(15,),
            instead="import torch\n\n\nclass Tables:\n    def grid(self, n, device=None):\n"
            "        return torch.arange(n, device=device)\n\n\n"
            "def first(tables, x, n):\n    return x + tables.grid(n=n, device=x.device)\n\n\n"
            "def second(tables, x, n, device):\n    x = x.to(device)\n"
            "    return x * tables.grid(n=n, device=device)\n",
        ),
        Bad(
            "import torch\nfrom transformers import AutoModel\n\n\n"
            "def loaded(path, torch_dtype, load):\n"
            "    model = AutoModel.from_pretrained(path)\n"
            "    return load(model, torch_dtype)\n",
            lines=(6,),
            instead="import torch\nfrom transformers import AutoModel\n\n\n"
            "def loaded(path, torch_dtype, load):\n"
            "    model = AutoModel.from_pretrained(path, torch_dtype=torch_dtype)\n"
            "    return load(model, torch_dtype)\n",
        ),
        Bad(
            "import torch\n\n\ndef saved(model, save, device, cpu_offload=False):\n"
            "    state = model.state_dict()\n    save(state, device)\n"
            "    return torch.Size(state)\n",
            lines=(4,),
            instead="import torch\n\n\ndef saved(model, save, device, cpu_offload=False):\n"
            "    state = model.state_dict()\n    save(state, device, cpu_offload)\n"
            "    return torch.Size(state)\n",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef steps(n, device='cuda'):\n"
            "    return torch.arange(n, device=device)\n\n\n"
            "def second(y):\n    return y.mul(steps(y.shape[1]))\n"
        ),
        Good(
            "import torch\n\n\ndef steps(n, dtype=None):\n"
            "    return torch.arange(n).to(dtype)\n\n\n"
            "def table(x, dtype):\n    return x.to(dtype) * steps(len(x), dtype)\n"
        ),
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
        for option in unread_options(module):
            name = module.text(option.args[0])
            yield self.finding(module, option, f"`{name}` is accepted and never read")
        for function in functions(module):
            yield from self._unread(module, function)
            yield from self._not_forwarded(module, function)
            yield from self._moved_without(module, function)
            yield from self._loaded_without(module, function)
            yield from self._without(module, function)
        if not isinstance(module.top.body[0], ast.Pass):  # something runs with the file itself
            yield from self._without(module, module.top)

    def _without(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        at_hand = device_at_hand(module, function)
        calls = [*accepting(module, function, "device")]
        if at_hand:
            calls += accepting_by_name(module, function, "device")
        for call in calls:
            said = at_hand or modelled_on(module, function, call)
            if said and not _is_explained(module, call):
                yield self._reported(module, call, said)

    def _unread(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for node, name in devices_named(module, function):
            if not is_read(module, function, name) and not is_empty(function):
                yield self.finding(module, node, f"`{name}` is never read, so nothing is put there")
        for each in parameters(function):
            option = _FORWARDED.search(each.arg) and not is_a_device(each.arg)
            if option and not is_read(module, function, each.arg) and not is_empty(function):
                yield self.finding(module, each, f"`{each.arg}` is accepted and never read")

    def _not_forwarded(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for name in (each.arg for each in parameters(function)):
            if name == "device" or not _FORWARDED.search(name):
                continue
            for call in accepting(module, function, name):
                if not is_maker(module, call) or takes_its_neighbour(call, name):
                    yield self.finding(module, call, _kept_back(module, call, function, name))

    def _loaded_without(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        """`Model.from_pretrained(path)` in a function that is given a `device_map`."""
        for name in sorted({each.arg for each in parameters(function)} & _OF_LOADERS):
            for call in module.calls("from_pretrained", inside=function):
                if name not in named(call) and not may_be_given_anything(call):
                    yield self.finding(module, call, _kept_back(module, call, function, name))

    def _moved_without(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        """`x.to(device)` in a function that is given a `dtype` too, and passes both elsewhere."""
        names = {each.arg for each in parameters(function)}
        if not names >= {"device", "dtype"}:
            return
        moves = list(module.calls("to", inside=function))
        both = [
            each
            for each in moves
            if passes_parameter(each, "device") and passes_parameter(each, "dtype")
        ]
        for call in moves if both else ():
            if passes_parameter(call, "device") and len(call.args) + len(call.keywords) == 1:
                line = both[0].lineno
                shown = one_line(module, call)
                message = f"`{shown}` passes `device` but not `dtype`; line {line} passes both"
                yield self.finding(module, call, message)

    def _reported(self, module: Module, call: ast.Call, said: str) -> Finding:
        what = "makes a tensor" if is_maker(module, call) else "accepts `device`"
        shown = one_line(module, call.func)
        message = f"`{shown}` {what} and gets no device, although `{said}` is available"
        return self.finding(module, call, message)


def _kept_back(module: Module, call: ast.Call, function: FunctionNode, name: str) -> str:
    accepts = f"`{one_line(module, call.func)}` accepts `{name}`"
    return f"{accepts}, but `{function.name}` does not pass on the `{name}` it is given"


def _is_explained(module: Module, call: ast.Call) -> bool:
    if is_maker(module, call):
        return is_explained(module, call)
    above = module.parent(call)
    return isinstance(above, ast.Attribute) and above.attr in MOVES | {"item"}
