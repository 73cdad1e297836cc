from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._customs import Departure, departures, is_explained
from tensortrail.rules.devices._lying import FACTORIES
from tensortrail.rules.shared.in_tests import in_tests

_ENOUGH = 4
"""Calls that make a custom."""
_MOST_IN_HUNDRED = 25
"""Calls without a device, for each hundred with one: more than these are no exception."""


class DeviceLeftOutOnce(Rule):
    """A file passes `device` to a function everywhere but here.

    ## What it does
    Counts the calls of each factory of torch in a file, `torch.arange` and the like, that are
    given `device=`. Reports a call without it if at least four others have it, and hardly any
    other is without. The same is done for factories that take the dtype of a tensor
    (`dtype=x.dtype`): most of them take its device as well.

    Nothing is reported while an object is set up, for a result that is moved, indexed with, read
    out or copied, for one without a dimension, and in functions that have no device at hand.

    ## Why is this bad?
    Whoever wrote the file knew that the device has to be given. What is made here lies on the
    default device, and meets tensors of another one if the rest of the file is right.

    ## Fix safety
    No fix is offered: which device is meant can differ from call to call.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV526"
    name = "device-left-out-once"
    severity = Severity.NOTE
    confidence = Confidence.MEDIUM
    default = False
    triggers = tuple(("torch", "device=", name) for name in FACTORIES)
    bad = (
        Bad(
            "import torch\n\n\ndef grid(x, n, m):\n"
            "    top = torch.arange(n, device=x.device)\n"
            "    left = torch.arange(m, device=x.device)\n"
            "    right = torch.arange(m, device=x.device)\n"
            "    end = torch.arange(n, device=x.device)\n    middle = torch.arange(n)\n"
            "    return x.mix(top, left, right, end, middle)\n",
            lines=(9,),
            instead="""\
import torch


def grid(x, n, m):
    top = torch.arange(n, device=x.device)
    left = torch.arange(m, device=x.device)
    right = torch.arange(m, device=x.device)
    end = torch.arange(n, device=x.device)
    middle = torch.arange(n, device=x.device)
    return x.mix(top, left, right, end, middle)
""",
        ),
        Bad(
            "import torch\n\n\ndef pads(x, y, n):\n"
            "    a = torch.zeros(n, dtype=x.dtype, device=x.device)\n"
            "    b = torch.ones(n, dtype=x.dtype, device=x.device)\n"
            "    c = torch.full((n,), 2, dtype=y.dtype, device=y.device)\n"
            "    d = torch.empty(n, dtype=y.dtype, device=y.device)\n    return a, b, c, d\n\n\n"
            "def pad(x, shape):\n    return torch.zeros(shape, dtype=x.dtype)\n",
            lines=(13,),
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef grid(x, n, m):\n"
            "    top = torch.arange(n, device=x.device)\n"
            "    left = torch.arange(m, device=x.device)\n"
            "    right = torch.arange(m, device=x.device)\n"
            "    end = torch.arange(n, device=x.device)\n    order = torch.arange(n)\n"
            "    return x[order], top, left, right, end\n"
        ),
        Good(
            "import torch\n\n\ndef grid(x, n, m):\n"
            "    top = torch.arange(n, device=x.device)\n"
            "    left = torch.arange(m, device=x.device)\n"
            "    right = torch.arange(m, device=x.device)\n"
            "    end = torch.arange(n, device=x.device)\n    middle = torch.arange(n)\n"
            "    middle = middle.float().to(x.device)\n"
            "    return x.mix(top, left, right, end, middle)\n"
        ),
        Good(
            "import torch\n\n\ndef grid(x, n, m):\n"
            "    top = torch.arange(n, device=x.device)\n"
            "    left, right = torch.arange(m), torch.arange(m)\n"
            "    return x.mix(top, left, right)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.Call] = set()
        for custom, departure in _departures(module):
            call = departure.call
            if call not in reported and not is_explained(module, call):
                reported.add(call)
                yield self._reported(module, custom, departure)

    def _reported(self, module: Module, custom: str, departure: Departure) -> Finding:
        count = len(departure.usual)
        first, second = departure.usual[:2]
        return self.finding(
            module,
            departure.call,
            f"{count} other calls of {custom} in this file are given a device and this one is "
            f"not, see lines {first.lineno} and {second.lineno}",
            trail=tuple((each, "given a device") for each in (first, second)),
        )


def _departures(module: Module) -> Iterator[tuple[str, Departure]]:
    by_name: dict[str, list[ast.Call]] = {}
    with_dtype: list[ast.Call] = []
    for call in module.calls(*FACTORIES):
        name = module.qualified(call.func)
        if not name.startswith("torch."):
            continue
        by_name.setdefault(name, []).append(call)
        if any(_takes_the_dtype(each) for each in call.keywords):
            with_dtype.append(call)
    for name, calls in by_name.items():
        if name != "torch.tensor":  # of numbers as often as not
            for departure in departures(calls, _ENOUGH, _MOST_IN_HUNDRED):
                yield f"`{name}`", departure
    for departure in departures(with_dtype, _ENOUGH, _MOST_IN_HUNDRED):
        yield "factories that take the dtype of a tensor", departure


def _takes_the_dtype(keyword: ast.keyword) -> bool:
    value = keyword.value
    return keyword.arg == "dtype" and isinstance(value, ast.Attribute) and value.attr == "dtype"
