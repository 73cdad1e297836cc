from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.customs import (
    MAKERS,
    Departure,
    departures,
    grouped,
    is_factory_of_torch,
    may_be_given_anything,
    named,
)
from tensortrail.rules.devices.shared.calls.explained import has_a_device_at_hand, is_explained
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import resolved_name

_ENOUGH, _ENOUGH_HERE, _ENOUGH_OF_ALL, _ENOUGH_OF_OTHERS = 4, 1, 6, 2
"""Calls that make a custom: of one factory, in one function, of all factories, of other names."""
_MOST_OF_PACKAGE = 80
"""Of a hundred calls of one name in the package, those that are given a device."""
_OF_ANYTHING = frozenset({*MAKERS, "to", "get", "append", "update", "format"})
_MOST_IN_HUNDRED, _MOST_IN_HUNDRED_HERE = 25, 100
_MOST_IN_HUNDRED_OF_ALL, _MOST_IN_HUNDRED_OF_OTHERS = 25, 50
"""Calls without a device, for each hundred with one: more than these are no exception."""


class DeviceLeftOutOnce(Rule):
    """A call leaves out `device`, although nearly all calls like it in the file pass one.

    ## What it does
    Compares calls with `device=` and calls without it, among

    - the factories of torch in one function;
    - the calls of one factory in the file, and all factories in the file;
    - the factories in the file that take the dtype of a tensor (`dtype=x.dtype`);
    - the calls of any other name that is given a device somewhere in the file;
    - the methods that nearly all calls in the package pass a device to.

    Reports a call without a device if most similar calls have one: at least as many in one
    function; at least four times as many in a file, and at least four calls (six if all factories
    count); or twice as many for another name.

    Not reported: a result that is moved, copied, read out or used as an index; a result without a
    dimension, unless similar calls pass a device; an object that is set up without a device; and
    functions in which no device is available.

    ## Why is this bad?
    The result is on the default device, and an operation that combines it with tensors on another
    one raises. The calls around it show that the device matters here.

    ## Fix safety
    No fix is offered: which device is meant can differ from call to call.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV526"
    name = "device-left-out-once"
    since = "0.2.0"
    severity = Severity.NOTE
    confidence = Confidence.MEDIUM
    default = False
    triggers = (("torch", "device="),)
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
        Bad(
            "import torch\n\n\ndef counted(x, n):\n"
            "    total = torch.zeros(n, device=x.device)\n    seen = torch.zeros(n)\n"
            "    return x.mix(total, seen)\n",
            lines=(6,),
        ),
        Bad(
            "import torch\n\n\ndef counted(rows, x):\n"
            "    total = torch.tensor(0.0, device=x.device)\n    seen = torch.tensor(0.0)\n"
            "    rows.reduce(total)\n    rows.reduce(seen)\n",
            lines=(6,),
        ),
        Bad(
            "import torch\nfrom codes import scheme\n\n\ndef made(x, n):\n"
            "    a = scheme(n, device=x.device)\n    b = scheme(n + 1, device=x.device)\n"
            "    c = scheme(n + 2)\n    return torch.cat([a, b, c, x])\n",
            lines=(8,),
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef scaled(x, n):\n    mask = torch.ones(n, device=x.device)\n"
            "    two = torch.zeros(())\n    return x * mask * two\n"
        ),
        Good(
            "import torch\n\n\ndef kept(x, n):\n    mask = torch.ones(n, device=x.device)\n"
            "    if torch.rand(1) < 0.5:\n        return x * mask\n    return x\n"
        ),
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
            function = module.function_of(call)
            if call in reported or function is None or not has_a_device_at_hand(module, function):
                continue
            if not is_explained(module, call, departure.usual):
                reported.add(call)
                yield self._reported(module, custom, departure)
        for call in _left_out_in_package(module):
            if call not in reported:
                yield self._of_package(module, call)

    def _of_package(self, module: Module, call: ast.Call) -> Finding:
        name, (count, _) = resolved_name(module, call), module.usual_in_project(call, "device")
        return self.finding(
            module,
            call,
            f"{count} other calls of `{name}` in the package pass a device, but this one does not",
        )

    def _reported(self, module: Module, custom: str, departure: Departure) -> Finding:
        count = len(departure.usual)
        shown = departure.usual[:2]
        lines = " and ".join(f"line {each.lineno}" for each in shown)
        others = "other" if count == 1 else "others"
        return self.finding(
            module,
            departure.call,
            f"this call passes no device, unlike {count} {others} of the {custom}, see {lines}",
            trail=tuple((each, "given a device") for each in shown),
        )


def _departures(module: Module) -> Iterator[tuple[str, Departure]]:
    made = [each for each in module.calls(*MAKERS) if is_factory_of_torch(module, each)]
    for function, calls in grouped(made, module.function_of).items():
        if function is not None:
            for departure in departures(calls, _ENOUGH_HERE, _MOST_IN_HUNDRED_HERE):
                yield "factories in this function", departure
    for name, calls in grouped(made, lambda each: module.qualified(each.func)).items():
        if name != "torch.tensor":  # of numbers as often as not
            for departure in departures(calls, _ENOUGH, _MOST_IN_HUNDRED):
                yield f"calls of `{name}` in this file", departure
    with_dtype = [each for each in made if any(map(_takes_the_dtype, each.keywords))]
    for departure in departures(with_dtype, _ENOUGH, _MOST_IN_HUNDRED):
        yield "factories in this file that take the dtype of a tensor", departure
    for departure in departures(made, _ENOUGH_OF_ALL, _MOST_IN_HUNDRED_OF_ALL):
        yield "factories in this file", departure
    for name, calls in _other_calls(module).items():
        for departure in departures(calls, _ENOUGH_OF_OTHERS, _MOST_IN_HUNDRED_OF_OTHERS):
            yield f"calls of `{name}` in this file", departure


def _left_out_in_package(module: Module) -> Iterator[ast.Call]:
    """`schedule.set_timesteps(n)`, where nearly all other files pass `device` to that method."""
    methods = [each for each in module.nodes(ast.Call) if isinstance(each.func, ast.Attribute)]
    for name, calls in grouped(methods, lambda each: resolved_name(module, each)).items():
        left = [each for each in calls if "device" not in named(each)]
        if not left or name in _OF_ANYTHING or not _is_usual_in_package(module, left[0]):
            continue
        for call in left:
            function = module.function_of(call)
            if function is None or may_be_given_anything(call):
                continue
            if any("device" in module.text(each) for each in call.args):
                continue  # it is given by position
            if has_a_device_at_hand(module, function) and not is_explained(module, call):
                yield call


def _is_usual_in_package(module: Module, call: ast.Call) -> bool:
    """Nearly all calls of what has this name are given a device."""
    passed, called = module.usual_in_project(call, "device")
    return passed >= _ENOUGH and passed * 100 >= _MOST_OF_PACKAGE * (called - 1)


def _other_calls(module: Module) -> dict[str, list[ast.Call]]:
    """Calls of anything else by name, if at least one of them is given a device."""
    names = {
        resolved_name(module, each) for each in module.nodes(ast.Call) if "device" in named(each)
    }
    names -= {*MAKERS, "to", ""}
    return {name: list(module.calls(name)) for name in sorted(names)}


def _takes_the_dtype(keyword: ast.keyword) -> bool:
    value = keyword.value
    return keyword.arg == "dtype" and isinstance(value, ast.Attribute) and value.attr == "dtype"
