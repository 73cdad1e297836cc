from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.accepted import (
    accepting,
    is_maker,
    is_weighted_layer,
    passes_on,
    unpacks_with,
)
from tensortrail.rules.devices.shared.calls.customs import named
from tensortrail.rules.devices.shared.calls.explained import is_explained, is_followed_by
from tensortrail.rules.devices.shared.calls.left_out_surely import given_both, is_surely_meant
from tensortrail.rules.devices.shared.calls.parts import parts_without_device
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import keyword_given
from tensortrail.rules.shared.moves import MODULE_TO_DEVICE, TO_DTYPE
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_KEEPS = frozenset({"as_tensor", "asarray"})
"""Factories that leave a tensor where it is."""
_OF_NUMBERS = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "linspace"})
"""Factories that make indices and counts seldom."""
_OTHERS_FOR_EACH = 2
"""Calls that are given the device, for each of several that are not."""


class LeftOutOfOneCall(Rule):
    """A function passes its `device` or `dtype` on to all its calls but one.

    ## What it does
    Looks at functions with a parameter `device` or `dtype`. Reports, as a note, the call that
    accepts it and is not given it: a factory of torch, a layer of `torch.nn` with weights, or a
    function or class of the project. Two or more such calls are reported if twice as many pass it.

    Reported by default only if there is more evidence:

    - another call of the same function, layer or factory passes it;
    - a constructor makes other layers or tensors of the module on its `device`, and this one, or a
      part of it that is a module of the project, without;
    - a constructor only keeps its `device` (`self.device = device`), and such a part takes one;
    - this call is given the `device`, and another one both `device` and `dtype`; or
    - what it makes goes into a layer of the object, as in `self.decoder(tokens)`.

    All others are reported only if the rule is selected (`--select DEV541`), and a `dtype` not at
    all. The same is true of buffers, names that contain `cpu` or `host`, and functions outside of
    modules.

    Not reported: a result that is moved, read out, used as an index or without a dimension; a
    function whose default is its own choice, or which is usually called without the argument; and a
    call under a condition about it.

    ## Why is this bad?
    The caller chose a device or dtype, and the result of this call has the default one, usually the
    CPU. An operation that combines it with the other results raises.

    ## Fix safety
    Unsafe: the default may be meant for this call.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV541"
    name = "left-out-of-one-call"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    notes = False
    confidence = Confidence.MEDIUM
    explains = ("DEV526", "DEV528", "DEV534", "DEV552", "DEV668")
    triggers = (
        ("torch", "device=device"), ("torch", "device = device"), ("torch", "dtype=dtype"),
        ("torch", "**", '"device"'), ("torch", "**", "'device'"),
    )  # fmt: skip
    bad = (
        Bad(
            "import torch\n\n\ndef grid(rows, columns, device):\n"
            "    left = torch.arange(rows, device=device)\n    top = torch.arange(columns)\n"
            "    return torch.meshgrid(left, top)\n",
            lines=(6,),
            fixed="import torch\n\n\ndef grid(rows, columns, device):\n"
            "    left = torch.arange(rows, device=device)\n"
            "    top = torch.arange(columns, device=device)\n"
            "    return torch.meshgrid(left, top)\n",
        ),
        Bad(
            "from torch import nn\n\n\nclass Gated(nn.Module):\n"
            "    def __init__(self, n, device=None):\n        super().__init__()\n"
            "        self.up = nn.Linear(n, 4 * n, device=device)\n"
            "        self.norm = nn.LayerNorm(n)\n",
            lines=(8,),
            fixed="from torch import nn\n\n\nclass Gated(nn.Module):\n"
            "    def __init__(self, n, device=None):\n        super().__init__()\n"
            "        self.up = nn.Linear(n, 4 * n, device=device)\n"
            "        self.norm = nn.LayerNorm(n, device=device)\n",
        ),
        Bad(
            "import torch\n\n\ndef signs(n, device=None):\n"
            "    return torch.ones(n, device=device)\n\n\n"
            "def made(n, device=None):\n    scale = signs(n + 1, device=device)\n"
            "    return scale, signs(n)\n",
            lines=(10,),
            fixed="import torch\n\n\ndef signs(n, device=None):\n"
            "    return torch.ones(n, device=device)\n\n\n"
            "def made(n, device=None):\n    scale = signs(n + 1, device=device)\n"
            "    return scale, signs(n, device=device)\n",
        ),
        Bad(
            "import torch\n\n\ndef cache(shape, device, dtype):\n"
            "    keys = torch.zeros(shape, device=device, dtype=dtype)\n"
            "    values = torch.zeros(shape, device=device)\n    return keys, values\n",
            lines=(6,),
            fixed="import torch\n\n\ndef cache(shape, device, dtype):\n"
            "    keys = torch.zeros(shape, device=device, dtype=dtype)\n"
            "    values = torch.zeros(shape, device=device, dtype=dtype)\n"
            "    return keys, values\n",
        ),
        Bad(
            """\
import torch
from torch import nn

class Spread(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.order = torch.arange(n, device=device)

class Shards(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.register_buffer("sizes", torch.ones(n, device=device))
        self.spread = Spread(n)
""",
            lines=(13,),
            fixed="""\
import torch
from torch import nn

class Spread(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.order = torch.arange(n, device=device)

class Shards(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.register_buffer("sizes", torch.ones(n, device=device))
        self.spread = Spread(n, device=device)
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Sampler(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def sample(self, rows, length, device=None):
        found = self.encoder(torch.tensor(rows, device=device))
        tokens = torch.full((1, length), 3)
        return self.decoder(tokens[:, :2], found)
""",
            lines=(11,),
            fixed="""\
import torch
from torch import nn

class Sampler(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def sample(self, rows, length, device=None):
        found = self.encoder(torch.tensor(rows, device=device))
        tokens = torch.full((1, length), 3, device=device)
        return self.decoder(tokens[:, :2], found)
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Layers(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.device = device
        self.net = nn.Linear(n, n)

    def forward(self, rows):
        return self.net(torch.as_tensor(rows, device=self.device))

class Actor(nn.Module):
    def __init__(self, n, device="cpu"):
        super().__init__()
        self.device = device
        self.last = Layers(n)
""",
            lines=(17,),
            fixed="""\
import torch
from torch import nn

class Layers(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.device = device
        self.net = nn.Linear(n, n)

    def forward(self, rows):
        return self.net(torch.as_tensor(rows, device=self.device))

class Actor(nn.Module):
    def __init__(self, n, device="cpu"):
        super().__init__()
        self.device = device
        self.last = Layers(n, device=device)
""",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef grid(rows, columns, device):\n"
            "    left = torch.arange(rows, device=device)\n"
            "    top = torch.arange(columns).float().to(device)\n"
            "    return torch.meshgrid(left, top)\n"
        ),
        Good(
            "import torch\n\n\ndef signs(n, device='meta'):\n"
            "    return torch.ones(n, device=device)\n\n\n"
            "def made(n, device=None):\n    scale = torch.rand(n, device=device)\n"
            "    return scale, signs(n)\n"
        ),
        Good(
            "import torch\n\n\ndef signs(n, device=None):\n    if device is None:\n"
            "        return torch.ones(n)\n    return torch.ones(n, device=device)\n"
        ),
        Good(
            "import torch\n\n\ndef picked(rows, n, device):\n"
            "    scale = torch.rand(n, device=device)\n"
            "    return rows[torch.randperm(n)], scale\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            names = {each.arg for each in parameters(function)}
            for name in ("device", "dtype"):
                if name in names:
                    yield from self._function(module, function, name)
            for part, kept in parts_without_device(module, function):
                yield self._part(module, part, kept)

    def _function(self, module: Module, function: FunctionNode, name: str) -> Iterator[Finding]:
        given = [
            each
            for each in module.nodes(ast.Call, function)
            if (passes_on(each, name) or unpacks_with(module, each, name))
            and called(each) not in MODULE_TO_DEVICE
            and module.function_of(each) is function
        ]
        pairs = list(given_both(module, function)) if name == "dtype" else []
        if not given and not pairs:
            return
        left = [each for each in _left_out(module, function, name) if _is_open(each)]
        if len(left) == 1 or _OTHERS_FOR_EACH * len(left) <= len(given or pairs):
            for call in left:
                is_sure = is_surely_meant(module, function, call, name, given, left)
                if is_sure or name == "device":
                    yield self._reported(module, call, name, given or pairs, is_sure)

    def _part(self, module: Module, part: ast.Call, kept: ast.Assign) -> Finding:
        edit = keyword_given(module, part, "device", "device")
        return self.finding(
            module,
            part,
            f"`{one_line(module, part.func)}` accepts a device, but gets none; line {kept.lineno} "
            "stores the device of the module",
            trail=[(kept, "the module stores its device")],
            fixes=(module.fix("pass the device on", Safety.UNSAFE, edit) if edit else None,),
        )

    def _reported(
        self, module: Module, call: ast.Call, name: str, given: Sequence[ast.Call], is_sure: bool
    ) -> Finding:
        near = sorted(given, key=lambda each: abs(each.lineno - call.lineno))[:2]
        lines = " and ".join(f"line {each.lineno}" for each in near)
        others = "another call" if len(given) == 1 else f"{len(given)} other calls"
        edit = keyword_given(module, call, name, name)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call.func)}` accepts a {name}, but gets none, unlike {others} in "
            f"this function, see {lines}",
            severity=None if is_sure else Severity.NOTE,
            trail=tuple((each, f"given the {name}") for each in near),
            fixes=(module.fix(f"pass the {name} on", Safety.UNSAFE, edit) if edit else None,),
        )


def _is_open(call: ast.Call) -> bool:
    """No other argument says where it lies, or what it is written into."""
    return not {"out", "pin_memory"} & named(call)


def _left_out(module: Module, function: FunctionNode, name: str) -> Iterator[ast.Call]:
    for call in accepting(module, function, name, layers=True):
        if is_explained(module, call) or called(call) in _KEEPS or passes_on(call, name):
            continue
        if _is_swapped_in(module, call):
            continue
        if any(re.search(rf"\b{name}\b", each.text) for each in module.guards_of(call)):
            continue
        if is_maker(module, call):
            takes = name == "device" or _makes_numbers(module, call)
        else:
            takes = is_weighted_layer(module, call) or _is_usually_given(module, call, name)
        if takes:
            yield call


def _is_swapped_in(module: Module, call: ast.Call) -> bool:
    """`x.data = torch.zeros(1)`: STO210 says what becomes of `x`."""
    above = module.parent(call)
    targets = above.targets if isinstance(above, ast.Assign) else []
    return any(isinstance(each, ast.Attribute) and each.attr == "data" for each in targets)


def _makes_numbers(module: Module, call: ast.Call) -> bool:
    return called(call) in _OF_NUMBERS and not is_followed_by(module, call, TO_DTYPE)


def _is_usually_given(module: Module, call: ast.Call, name: str) -> bool:
    """The callee has no choice of its own as the default, and the calls of the package that pass
    one are not fewer than those that pass none."""
    if name in module.chosen_defaults_of(call) or isinstance(module.parent(call), ast.Expr):
        return False
    calls = [each for each in module.calls_in_project(call) if not each.is_open]
    passing = sum(name in each.given | each.written for each in calls)
    return passing * 2 >= len(calls) - 1
