from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.asked_in_vain import asked_in_vain
from tensortrail.rules.devices.shared.modules.kept_by_class import (
    BRINGERS,
    Kept,
    Mover,
    left_behind,
    movers,
)
from tensortrail.rules.devices.shared.modules.old_device import Stale, stale
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.shared.given_devices import is_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, given, is_text

_GRID = """\
from dataclasses import dataclass

from torch import Tensor


@dataclass
class Grid:
    corners: Tensor
    weights: Tensor
    step: float

    def to(self, device):
        self.corners = self.corners.to(device)
MORE        return self
"""
_TABLES = """\
import torch


class Tables:
    def __init__(self, n, device):
        self.rows = torch.arange(n, device=device)
        self.columns = torch.arange(n, device=device)

    def to(self, device):
        self.rows = self.rows.to(device)
MORE        return self

    def sum(self):
        return self.rows[:, None] + self.columns[None]
"""
_SHADER = """\
class Shader:
    def __init__(self, lights=None, device="cpu"):
        self.lights = lights or Lights(device=device)
        self.surface = Surface(4, device)

    def to(self, device):
        self.lights = self.lights.to(device)
MORE        return self

    def shade(self, points):
        return self.lights.on(self.surface.at(points))
"""


_GRAPHS = """\
class Graphs:
    def __init__(self, first, second=None):
        self.first = first
        self.second = second
        self.device = first.device

    def to(self, device):
        self.first = self.first.to(device)
MORE        self.device = device
        return self
"""
_MOVES_THE_SECOND = """\
        if self.second is not None:
            self.second = self.second.to(device)
"""
_BOTH_CALLED = """\
        return self.blend(self.raster(points))
"""
_BOTH_SORTED = """\
        self.raster = ordered(self.raster)
        self.blend = ordered(self.blend)
"""
_RENDERER = """\
from torch import nn


class Renderer(nn.Module):
    def __init__(self, raster, blend):
        super().__init__()
        self.raster = raster
        self.blend = blend

    def to(self, device):
        self.raster = self.raster.to(device)
MORE        return self

    def forward(self, points):
        return self.blend(self.raster(points))
"""


_EXPERIENCE = """\
import torch
from dataclasses import dataclass


def to(tensor, device):
    if isinstance(tensor, list):
        return [to(each, device) for each in tensor]
    return tensor.to(device)


@dataclass
class Experience:
    tokens: torch.Tensor
    values: torch.Tensor | None
    divergence: torch.Tensor | None = None

    def to_device(self, device):
        self.tokens = to(self.tokens, device)
        self.values = to(self.values, device)
"""

_READER = """\
class Reader:
    def __init__(self, path, device):
        self.path = path
        self.device = device

    def load(self):
        return read(self.path, device=self.device)

    def to(self, device):
        self.found = read(self.path, device=HERE)
        self.device = device
        return self

class Both:
    def __init__(self, one, other, device):
        self.device = device
        self.one = one(device=self.device)
        self.other = other(device=self.device)

    def to(self, d):
        self.one.device = d
        self.other.device = d
        return self
"""


class LeftOutOfTo(Rule):
    """The `to()` method of a class moves some of its tensors and leaves another one behind.

    ## What it does
    Looks at classes whose own `to`, `cuda`, `_apply` or `to_device` moves attributes by name.
    Reports, as a note, a tensor of the class that the method does not name:

    - a field of a dataclass that is a tensor by its type, as a field that is moved is;
    - an attribute that holds a tensor, or is assigned together with one that is moved;
    - an attribute that is made on a device, or used, in the same way as one that is moved.

    Also reports

    - a `to` that ignores the device it is given, although the class keeps tensors;
    - a `to` that uses the stored device of the object before it stores the new one, or never stores
      it;
    - a condition or loop about an attribute that does nothing with it.

    Not reported: parameters, buffers and submodules, which `super().to()` moves; an attribute that
    nothing reads, or that another method moves; and methods that loop over all attributes.

    ## Why is this bad?
    After the move, the object is on two devices. An operation that uses both tensors raises, or
    copies one of them each time.

    ## Fix safety
    Unsafe: it moves the attribute in the same way as the one before. It may be None, or meant to
    stay.

    ## References
    - pytorch documentation of `torch.nn.Module.to`
    """

    code = "DEV551"
    name = "left-out-of-to"
    severity = Severity.WARNING
    warns = False
    explains = ("DEV530",)
    triggers = tuple(f"def {name}(" for name in sorted(BRINGERS))
    bad = (
        Bad(
            _GRID.replace("MORE", ""),
            lines=(13,),
            fixed=_GRID.replace("MORE", "        self.weights = self.weights.to(device)\n"),
        ),
        Bad(
            _TABLES.replace("MORE", ""),
            lines=(10,),
            fixed=_TABLES.replace("MORE", "        self.columns = self.columns.to(device)\n"),
        ),
        Bad(
            _GRID.replace("MORE", "").replace("self.corners = self.corners.to(device)", "pass"),
            lines=(12,),
            instead=_GRID.replace("MORE", "        self.weights = self.weights.to(device)\n"),
        ),
        Bad(
            "from torch import nn\n\n\nclass Blend(nn.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.left, self.right = halves(n, device)\n\n"
            "    def to(self, device):\n        self.left = self.left.to(device)\n"
            "        return super().to(device)\n\n"
            "    def forward(self, x):\n        return x * self.left - x * self.right\n",
            lines=(10,),
            fixed="from torch import nn\n\n\nclass Blend(nn.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.left, self.right = halves(n, device)\n\n"
            "    def to(self, device):\n        self.left = self.left.to(device)\n"
            "        self.right = self.right.to(device)\n"
            "        return super().to(device)\n\n"
            "    def forward(self, x):\n        return x * self.left - x * self.right\n",
        ),
        Bad(
            _GRID.replace("MORE", "").replace(": Tensor", ': Float[Tensor, "n 3"]'),
            lines=(13,),
            fixed=_GRID.replace(": Tensor", ': Float[Tensor, "n 3"]').replace(
                "MORE", "        self.weights = self.weights.to(device)\n"
            ),
        ),
        Bad(
            _SHADER.replace("MORE", ""),
            lines=(7,),
            fixed=_SHADER.replace("MORE", "        self.surface = self.surface.to(device)\n"),
        ),
        Bad(
            _GRAPHS.replace("MORE", "        if self.second is not None:\n            pass\n"),
            lines=(9,),
            instead=_GRAPHS.replace("MORE", _MOVES_THE_SECOND),
        ),
        Bad(
            _RENDERER.replace("MORE", ""),
            lines=(11,),
            fixed=_RENDERER.replace("MORE", "        self.blend = self.blend.to(device)\n"),
        ),
        Bad(
            _RENDERER.replace("MORE", "").replace(_BOTH_CALLED, _BOTH_SORTED),
            lines=(11,),
            fixed=_RENDERER.replace("MORE", "        self.blend = self.blend.to(device)\n").replace(
                _BOTH_CALLED, _BOTH_SORTED
            ),
        ),
        Bad(
            _EXPERIENCE,
            lines=(19,),
            fixed=_EXPERIENCE + "        self.divergence = to(self.divergence, device)\n",
        ),
        Bad(
            _READER.replace("HERE", "self.device"),
            lines=(10, 21),
            instead=_READER.replace("HERE", "device").replace(
                "return", "self.device = d\n        return"
            ),
        ),
    )
    good = (
        Good(_GRAPHS.replace("MORE", "        if self.device == device:\n            pass\n")),
        Good(_RENDERER.replace("MORE", "        super().to(device)\n")),
        Good(_GRID.replace("MORE", "").replace("weights: Tensor", "weights: list[int]")),
        Good(
            _GRID.replace(
                "MORE",
                "        for name in ('weights',):\n"
                "            setattr(self, name, getattr(self, name).to(device))\n",
            )
        ),
        Good(
            _TABLES.replace("MORE", "").replace(
                "self.columns[None]", "self.columns[None].to(self.rows)"
            )
        ),
        Good(_TABLES.replace("MORE", "").replace("arange(n, device=device)\n\n", "tensor(2)\n\n")),
        Good(
            _GRID.replace("MORE", "").replace(
                "self.corners = self.corners.to(device)", "raise NotImplementedError"
            )
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Own(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.proj = nn.Linear(n, n)\n        self.table = torch.ones(n)\n"
            "        self.weight = nn.Parameter(torch.ones(n))\n\n"
            "    def _apply(self, fn):\n        self.table = fn(self.table)\n"
            "        return super()._apply(fn)\n\n"
            "    def forward(self, x):\n        return self.proj(x) * self.table * self.weight\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            for mover in movers(module, cls):
                speaks = mover.moves or _is_idle(module, mover)
                left = left_behind(module, cls, mover) if speaks else ()
                if left:
                    yield self._reported(module, mover, left)
            for function in cls.body:
                if isinstance(function, ast.FunctionDef) and function.name in BRINGERS:
                    yield from self._in_vain(module, function)
            for each in stale(module, cls):
                yield self._old(module, each)

    def _old(self, module: Module, stale: Stale) -> Finding:
        own, name = f"self.{stale.attribute}", stale.function.name
        message = f"`{name}` passes the new device to its parts, but leaves the old one in `{own}`"
        if stale.stored is not None:
            message = (
                f"`{own}` is still the device from before `{name}`: `{stale.given}` is only stored "
                "below"
            )
        return self.finding(
            module, stale.node, message, trail=[(stale.stored, "the new device is stored")]
        )

    def _in_vain(self, module: Module, function: ast.FunctionDef) -> Iterator[Finding]:
        for statement, name in asked_in_vain(module, function):
            yield self.finding(
                module,
                statement,
                f"`{function.name}` tests `{name}`, but does not move it",
                severity=Severity.NOTE if is_beforehand(module, function) else None,
            )

    def _reported(self, module: Module, mover: Mover, left: Sequence[Kept]) -> Finding:
        last = max(mover.moves.values(), key=lambda each: each.lineno, default=None)
        names = " and ".join(f"`self.{each.name}`" for each in left)
        moved = " and ".join(f"`self.{each}`" for each in list(mover.moves)[:2])
        what = (
            f"moves {moved}, but not {names}"
            if moved
            else f"does not move {names}: it ignores the device that it is given"
        )
        apart = is_beforehand(module, mover.function) or all(_is_told(module, e) for e in left)
        return self.finding(
            module,
            last or mover.function,
            f"`{mover.function.name}` {what}, see line {left[0].at.lineno}",
            severity=Severity.NOTE if apart else None,
            trail=tuple((each.at, f"`{each.name}` is stored") for each in left),
            fixes=(_fix(module, last, mover, left),),
        )


def _is_told(module: Module, kept: Kept) -> bool:
    """An object that is given a device when it is made: `self.rows = Rows(self.device)`."""
    made = kept.at.value if isinstance(kept.at, ast.Assign) else None
    if not isinstance(made, ast.Call) or not called(made)[:1].isupper():
        return False
    return any(is_device(module, each) for each in given(made))


def _is_idle(module: Module, mover: Mover) -> bool:
    """It does not look at what it is given, and is no placeholder of one that does."""
    function = mover.function
    given = {each.arg for each in function.args.args[1:2]}
    used = {each.id for each in module.nodes(ast.Name, function)}
    steps = [each for each in function.body if not is_text(each)]
    stub = not steps or isinstance(steps[0], ast.Raise) or bool(function.decorator_list)
    returns = module.nodes(ast.Return, function)
    own = all(module.text(each.value) == "self" for each in returns if each.value is not None)
    return bool(given) and given.isdisjoint(used) and not stub and bool(returns) and own


def _fix(module: Module, last: ast.Assign | None, mover: Mover, left: Sequence[Kept]) -> Fix | None:
    if last is None or not isinstance(last.targets[0], ast.Attribute):
        return None
    moved, text = last.targets[0].attr, module.text(last)
    if module.text(last.value).count(f".{moved}") != 1 or "\n" in text:
        return None
    indent = " " * last.col_offset
    lines = "".join(f"\n{indent}{text.replace(f'.{moved}', f'.{each.name}')}" for each in left)
    what = "move it too" if len(left) == 1 else "move them too"
    return module.fix(what, Safety.UNSAFE, module.replace(last, text + lines))
