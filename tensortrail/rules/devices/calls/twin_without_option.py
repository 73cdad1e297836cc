from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.accepted import accepts, passes_on
from tensortrail.rules.devices.shared.calls.alike import (
    are_apart,
    are_parts_of_one,
    compared,
    conditions_of_one,
)
from tensortrail.rules.devices.shared.calls.customs import named
from tensortrail.rules.devices.shared.calls.explained import is_explained, is_followed_by
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import keyword_given
from tensortrail.rules.shared.moves import TO_DTYPE
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_OPTION = pattern(
    r"(?:\w+_)?dtype|\w+_device|generator|device_map|map_location|\w*offload\w*", re.IGNORECASE
)
_FILLED = frozenset({"zeros", "ones", "empty", "full"})
"""Masks and sums are made of these, whose type is another one on purpose."""
_ENOUGH = 3
"""Equal arguments of calls of two functions that are written for one use."""


class TwinWithoutOption(Rule):
    """Of two similar calls, one is given a `dtype` or another option, and the other is not.

    ## What it does
    Looks at parameters such as `dtype`, `generator`, `map_location`, `rand_device` or
    `offload_to_cpu` that a function passes on by name. Reports, as a note, a call that is not given
    the option next to one that is, if both set the same parameters otherwise, and

    - they call the same function, with values that are equal except for one;
    - they call the same function, in the same or in neighbouring statements; or
    - they call two functions that accept the option, in two branches, with three or more values
      that are all equal.

    Not reported: code under a condition about the option, a result that is cast or an index, and
    `torch.zeros`, `ones`, `empty` and `full`, which often make masks.

    ## Why is this bad?
    The caller chose a type, device or generator. The result of one call follows, and the result of
    the other has the default.

    ## Fix safety
    Unsafe: the default may be meant for this call.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.dtype`
    """

    code = "DEV571"
    name = "twin-without-option"
    severity = Severity.NOTE
    confidence = Confidence.MEDIUM
    explains = ("DEV528",)
    triggers = (
        ("torch", "dtype="), ("torch", "generator="), ("torch", "map"), ("torch", "_device="),
        ("torch", "offload"),
    )  # fmt: skip
    bad = (
        Bad(
            "import torch\n\n\ndef angles(height, width, device, dtype):\n"
            "    y = torch.arange(height, device=device)\n"
            "    x = torch.arange(width, device=device, dtype=dtype)\n"
            "    return y[:, None] * x[None, :]\n",
            lines=(5,),
            fixed="import torch\n\n\ndef angles(height, width, device, dtype):\n"
            "    y = torch.arange(height, device=device, dtype=dtype)\n"
            "    x = torch.arange(width, device=device, dtype=dtype)\n"
            "    return y[:, None] * x[None, :]\n",
        ),
        Bad(
            "import torch\nimport files\n\n\ndef restored(path, strict, map_location=None):\n"
            "    if strict:\n        return files.load(path, strict)\n"
            "    return files.load(path, strict, map_location=map_location)\n",
            lines=(7,),
            fixed="import torch\nimport files\n\n\ndef restored(path, strict, map_location=None):\n"
            "    if strict:\n        return files.load(path, strict, map_location=map_location)\n"
            "    return files.load(path, strict, map_location=map_location)\n",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef made(rows, device, dtype):\n"
            "    at = torch.arange(len(rows), device=device)\n"
            "    scale = torch.arange(len(rows), device=device, dtype=dtype)\n"
            "    return rows[at] * scale\n"
        ),
        Good(
            "import torch\nimport files\n\n\ndef restored(path, map_location=None):\n"
            "    if map_location is None:\n        return files.load(path)\n"
            "    return files.load(path, map_location=map_location)\n"
        ),
        Good(
            "import torch\n\n\ndef made(n, device, dtype):\n"
            "    total = torch.zeros(n, device=device)\n"
            "    rows = torch.zeros(n, device=device, dtype=dtype)\n    return total, rows\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for each in parameters(function):
                if _OPTION.fullmatch(each.arg):
                    for call, twin in _unlike(module, function, each.arg):
                        yield self._reported(module, call, twin, each.arg)

    def _reported(self, module: Module, call: ast.Call, twin: ast.Call, name: str) -> Finding:
        edit = keyword_given(module, call, name, name)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call.func)}` is called without `{name}`, but line {twin.lineno} "
            f"makes the same kind of call with `{name}={name}`",
            trail=((twin, f"given `{name}`"),),
            fixes=(module.fix(f"pass `{name}` on", Safety.UNSAFE, edit) if edit else None,),
        )


def _unlike(
    module: Module, function: FunctionNode, name: str
) -> Iterator[tuple[ast.Call, ast.Call]]:
    calls = [each for each in module.nodes(ast.Call, function) if _is_open(module, function, each)]
    given = [each for each in calls if name in named(each) and passes_on(each, name)]
    for call in calls if given else ():
        if name in named(call) or passes_on(call, name) or _is_meant(module, call, name):
            continue
        near = sorted(given, key=lambda each: abs(each.lineno - call.lineno))
        twin = next((each for each in near if _are_twins(module, call, each, name)), None)
        if twin is not None and not _are_many(module, calls, call, name):
            yield call, twin


def _is_open(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    return module.function_of(call) is function and called(call) not in ("to", "dict")


def _is_meant(module: Module, call: ast.Call, name: str) -> bool:
    """Something says that the option does not matter here."""
    if any(re.search(rf"\b{name}\b", each.text) for each in module.guards_of(call)):
        return True
    if name.endswith("dtype"):
        callee = module.qualified(call.func)
        if callee.startswith("numpy."):
            return True
        if (callee.startswith("torch.") and called(call) in _FILLED) or is_followed_by(
            module, call, TO_DTYPE
        ):
            return True
    return is_explained(module, call)


def _are_many(module: Module, calls: Sequence[ast.Call], call: ast.Call, name: str) -> bool:
    """More calls of the callee do without the option than are given one."""
    callee = module.text(call.func)
    said = [name in named(each) for each in calls if module.text(each.func) == callee]
    return said.count(False) > max(1, said.count(True))


def _are_twins(module: Module, one: ast.Call, other: ast.Call, name: str) -> bool:
    count, equal = compared(module, one, other, name)
    if equal < 0 or are_parts_of_one(module, one, other):
        return False
    words = [each for each in name.split("_") if len(each) > 2]
    asked = " ".join(conditions_of_one(module, one, other))
    if any(each in asked for each in words):
        return False
    apart = are_apart(module, one, other)
    if module.text(one.func) == module.text(other.func):
        return equal >= max(1, count - 1) or (apart is not None and apart <= 1 and count > 0)
    known = accepts(module, one, name)
    return known and apart is None and count == equal >= _ENOUGH
