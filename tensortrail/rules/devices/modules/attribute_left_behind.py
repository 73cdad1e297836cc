from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import certainly
from tensortrail.rules.devices.shared.meetings.described import described
from tensortrail.rules.devices.shared.meetings.following import follows
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.modules.as_buffers import as_buffers, is_registered
from tensortrail.rules.devices.shared.modules.carried_state import Carried, carried_states
from tensortrail.rules.devices.shared.modules.plain_attributes import kept_at
from tensortrail.rules.devices.shared.modules.users_of_made import READ, users_of_made
from tensortrail.rules.devices.shared.written_for.beforehand import need_not_move
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.placeholders import is_placeholder
from tensortrail.rules.view import FunctionNode


class AttributeLeftBehind(Rule):
    """A module computes with a tensor in a plain attribute, which `.to()` does not move.

    ## What it does
    Reports, as a note, an operation in a method of a module on two tensors:

    - one from a plain attribute, made without a device or from an array while the module was set
      up;
    - a parameter, a buffer, an argument of `forward`, or a tensor that was put on a device.

    `setattr` and `self.__dict__` store an attribute too. So does a hidden state that goes through a
    layer: `out, self.hidden = self.rnn(x, self.hidden)`.

    Not reported: an attribute that is set again elsewhere, that `to` or `_apply` of the class
    moves, or that is moved on its way to the operation; and a tensor without a dimension.

    ## Why is this bad?
    The first call on a GPU raises, because the tensor is still on the CPU: `module.to(device)`
    moves parameters, buffers and submodules, and nothing else.

    ## Fix safety
    Unsafe: the attribute becomes a buffer, with `persistent=False` so that state dicts stay as they
    are. Only offered if the class assigns the attribute once.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV525"
    name = "attribute-left-behind"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    notes = False
    needs_callers = True
    explains = ("DEV530",)
    triggers = tuple(("torch", "self.", name) for name in (*FACTORIES, *READ))
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n\n"
            "    def forward(self, x):\n        return x * self.weights\n",
            lines=(8,),
            fixed="""\
import torch
from torch import nn


class Weighted(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("weights", torch.linspace(0, 1, n), persistent=False)

    def forward(self, x):
        return x * self.weights
""",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\ndef filter_of(n):\n"
            "    return torch.hann_window(n) * torch.arange(n)\n\n\n"
            "class Smooth(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        taps = filter_of(n)\n        self.taps = taps.view(1, 1, n)\n\n"
            "    def forward(self, x):\n"
            "        return nn.functional.conv1d(x, self.taps.expand(2, -1, -1))\n",
            lines=(13,),
            fixed="import torch\nfrom torch import nn\n\n\ndef filter_of(n):\n"
            "    return torch.hann_window(n) * torch.arange(n)\n\n\n"
            "class Smooth(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
            "        taps = filter_of(n)\n"
            '        self.register_buffer("taps", taps.view(1, 1, n), persistent=False)\n\n'
            "    def forward(self, x):\n"
            "        return nn.functional.conv1d(x, self.taps.expand(2, -1, -1))\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Scales(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.proj = nn.Linear(n, n)\n"
            "        self.steps = [torch.ones(n) for _ in range(3)]\n\n"
            "    def forward(self, x):\n        return self.proj(x) * self.steps[0]\n",
            lines=(9,),
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Carrying(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.rnn = nn.LSTM(n, n)\n"
            "        self.hidden = (torch.zeros(1, 1, n), torch.zeros(1, 1, n))\n\n"
            "    def forward(self, x):\n"
            "        out, self.hidden = self.rnn(x, self.hidden)\n        return out\n",
            lines=(9,),
        ),
        Bad(
            """\
import numpy
import torch
from torch import nn


class Tabled(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.table = torch.from_numpy(numpy.load(path))

    def forward(self, x: torch.Tensor, rows):
        self.table = self.table.view(rows, -1)
        return x @ self.table
""",
            lines=(9,),
        ),
        Bad(
            """\
import torch
from torch import nn


class Mean(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.total = torch.zeros(n)

    def forward(self, x: torch.Tensor):
        self.total += 1
        return x / self.total
""",
            lines=(8,),
        ),
        Bad(
            """\
import torch
from torch import nn


class Carrying(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.rnn = nn.GRU(n, n)
        self.hidden = self.init_hidden(1)

    def init_hidden(self, batch):
        return torch.zeros(1, batch, self.n)

    def forward(self, x):
        out, hidden = self.rnn(x, self.hidden)
        self.hidden = hidden.detach()
        return out
""",
            lines=(10,),
        ),
        Bad(
            """\
import torch
from torch import nn


class Stepping(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.cell = nn.LSTMCell(n, n)
        self.reset(n)

    def reset(self, n):
        self.h = torch.zeros(1, n)
        self.c = torch.zeros(1, n)

    def forward(self, x):
        self.h, self.c = self.cell(x, (self.h, self.c))
        return self.h
""",
            lines=(12, 13),
        ),
        Bad(
            """\
import torch
from torch import nn


class Relative(nn.Module):
    def __init__(self, layers, n):
        super().__init__()
        self.proj = nn.ModuleList(nn.Linear(n, n) for _ in range(layers))
        object.__setattr__(self, "scale", torch.ones(n))
        for i in range(layers):
            setattr(self, f"bias_{i}", torch.arange(n).float())

    def forward(self, x):
        for i, layer in enumerate(self.proj):
            x = layer(x) + getattr(self, f"bias_{i}")
        return x * self.scale
""",
            lines=(9, 11),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn


class Relative(nn.Module):
    def __init__(self, n, names):
        super().__init__()
        self.proj = nn.Linear(n, n)
        setattr(self, "scale", nn.Parameter(torch.ones(n)))
        for i in range(2):
            self.register_buffer(f"bias_{i}", torch.ones(n))
        for i in range(2, 4):
            setattr(self, f"bias_{i}", torch.ones(n))
        setattr(self, "steps", torch.ones(n))

    def forward(self, x):
        x = self.proj(x) * self.scale + getattr(self, "steps").to(x.device)
        return x + getattr(self, "bias_0")
"""
        ),
        Good(
            """\
import torch
from torch import nn


class Tabled(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = torch.from_numpy(rows)

    def forward(self, x: torch.Tensor):
        self.table = self.table.to(x.device).view(3, -1)
        return x @ self.table
"""
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Carrying(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.rnn = nn.LSTM(n, n)\n"
            "        self.hidden = (torch.zeros(1, 1, n), torch.zeros(1, 1, n))\n\n"
            "    def begin(self, x):\n"
            "        self.hidden = tuple(each.to(x.device) for each in self.hidden)\n\n"
            "    def forward(self, x):\n"
            "        out, self.hidden = self.rnn(x, self.hidden)\n        return out\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n"
            "        self.scale = torch.tensor(2.0)\n\n"
            "    def forward(self, x):\n"
            "        return x * self.weights.to(x.device) * self.scale\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n\n"
            "    def _apply(self, fn, recurse=True):\n"
            "        self.weights = fn(self.weights)\n"
            "        return super()._apply(fn, recurse)\n\n"
            "    def forward(self, x):\n        return x * self.weights\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Weighted(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weights = torch.linspace(0, 1, n)\n\n"
            "    def forward(self, x):\n"
            "        if self.weights.device != x.device:\n"
            "            self.weights = self.weights.to(x.device)\n"
            "        return x * self.weights\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Based(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.fc = nn.Linear(n, n)\n"
            '        self.register_buffer("scale", torch.ones(n))\n\n\n'
            "class Weighted(Based):\n"
            "    def __init__(self, n):\n        super().__init__(n)\n"
            "        self.scale = torch.linspace(0, 1, n)\n\n"
            "    def forward(self, x):\n        return self.fc(x) * self.scale\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        by_statement: dict[ast.AST, dict[str, _Left]] = {}
        for function in dict.fromkeys(users_of_made(module)):
            for meeting in module.places(function).meetings:
                inner = module.function_of(meeting.node) or function
                left = _left_behind(module, inner, meeting)
                if left is not None:
                    at = kept_at(module, function, left.name) or meeting.node
                    by_statement.setdefault(at, {}).setdefault(left.name, left)
        for at, found in by_statement.items():
            yield self._reported(module, at, list(found.values()))
        for cls in module.nodes(ast.ClassDef):
            facts = module.class_facts(cls)
            if facts is not None and facts.is_module:
                for carried in carried_states(module, cls):
                    yield self._carried(module, carried)

    def _carried(self, module: Module, carried: Carried) -> Finding:
        """`self.hidden`, which the layer that it is handed to gives back."""
        shown, line = module.text(carried.made), carried.call.lineno
        return self.finding(
            module,
            module.statement_of(carried.made),
            f"`{shown}` is made on the default device, where `.to()` does not reach it, and line "
            f"{line} passes it to `{module.text(carried.call.func)}`, which `.to()` moves",
            trail=((carried.call, "passed to a layer of the module"),),
        )

    def _reported(self, module: Module, at: ast.AST, found: Sequence[_Left]) -> Finding:
        names = " and ".join(f"`self.{each.name}`" for each in found)
        are, it = ("are plain attributes", "them") if found[1:] else ("is a plain attribute", "it")
        meets = found[0].meeting.node
        line, there = getattr(meets, "lineno", 0), described(found[0].there)
        return self.finding(
            module,
            at,
            f"{names} {are} that `.to()` does not move, and line {line} combines {it} with a "
            f"tensor {there}",
            trail=(
                (at, "kept as a plain attribute"),
                (meets, f"meets a tensor {there}"),
            ),
            severity=Severity.NOTE if need_not_move(module, at) else None,
            fixes=[as_buffers(module, at, [each.name for each in found])],
        )


class _Left(NamedTuple):
    """An attribute that a move of its module does not reach, and what it then meets."""

    name: str
    meeting: Meeting
    there: Place


def _left_behind(module: Module, function: FunctionNode, meeting: Meeting) -> _Left | None:
    for odd, other in meeting.pairs:
        kept = certainly(odd, function, Where.STAYS)
        if kept is None or kept.given or is_legal(meeting, odd) or is_placeholder(module, kept.by):
            continue
        if is_registered(module, function, kept.subject):
            continue
        there = follows(module, function, other)
        if there is not None:
            return _Left(kept.subject, meeting, there)
    return None
