from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.beside_outputs import meets_the_layers
from tensortrail.rules.devices.shared.modules.kept_plainly import held_by, kept_tensors
from tensortrail.rules.devices.shared.modules.made_in_place import (
    is_made_here,
    is_on_a_gpu,
    is_unsure,
    may_follow,
)
from tensortrail.rules.devices.shared.modules.registered_beside import beside_registered
from tensortrail.rules.devices.shared.written_for.beforehand import need_not_move
from tensortrail.rules.places import What
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import is_self


class PlainBesideBuffers(Rule):
    """A module keeps a tensor in a plain attribute, which `.to()` does not move.

    ## What it does
    Reports, as a note, `self.name = tensor` where an `nn.Module` is set up, if another method uses
    the attribute and nothing in the class moves it or compares its device. The message counts the
    buffers of the class.

    Only reported if the rule is selected (`--select DEV530`):

    - a tensor that was put on a device or came from the caller, in a class without buffers, unless
      an operation takes it together with what a layer of the module gives, or with the input of
      `forward` and what is made of it;
    - a tensor made on a device after the module was built, or only passed to functions of other
      files;
    - modules that are built under `with torch.device(device):`;
    - `layer.table = tensor` in a function that calls `layer.register_buffer` for other tensors.

    Not reported: parameters, an index, a tensor without a dimension, an attribute that another
    method sets, a tensor filled from CPU tensors, and one that is only read as numbers.

    ## Why is this bad?
    On a GPU, an operation that combines the tensor with a weight or an input raises:
    `module.to(device)` moves parameters, buffers and submodules, and nothing else.

    ## Fix safety
    No fix is offered: a buffer may be saved with the module or not (`persistent`), and both change
    what others see.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV530"
    name = "plain-beside-buffers"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    notes = False
    confidence = Confidence.MEDIUM
    triggers = (("torch", "self.", "Module"), (".register_buffer", "def "))
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Rotary(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        angles = torch.arange(n) / n\n"
            "        self.register_buffer('cos', angles.cos())\n"
            "        self.sin = angles.sin()\n\n"
            "    def forward(self, x):\n        return self.mix(x, self.cos, self.sin)\n",
            lines=(10,),
            instead="""\
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, n):
        super().__init__()
        angles = torch.arange(n) / n
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        return self.mix(x, self.cos, self.sin)
""",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Counted(nn.Module):\n"
            "    def __init__(self, n, masked):\n        super().__init__()\n"
            "        self.total: torch.Tensor\n        self.total = torch.zeros(n)\n"
            "        if masked:\n            self.mask = torch.ones(n).tril()\n"
            "        else:\n            self.mask = None\n\n"
            "    def forward(self, x):\n        self.total += 1\n"
            "        return self.mix(x, self.mask, self.total)\n",
            lines=(9, 11),
            instead="""\
import torch
from torch import nn


class Counted(nn.Module):
    def __init__(self, n, masked):
        super().__init__()
        self.register_buffer("total", torch.zeros(n))
        self.register_buffer("mask", torch.ones(n).tril() if masked else None)

    def forward(self, x):
        self.total += 1
        return self.mix(x, self.mask, self.total)
""",
        ),
        Bad(
            "import torch\n\n\ndef prepared(layer, n):\n"
            "    layer.register_buffer('order', torch.arange(n))\n"
            "    layer.scale = torch.ones(n)\n",
            lines=(6,),
            instead="import torch\n\n\ndef prepared(layer, n):\n"
            "    layer.register_buffer('order', torch.arange(n))\n"
            "    layer.register_buffer('scale', torch.ones(n))\n",
        ),
        Bad(
            """\
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, mean: torch.Tensor | float, features: nn.Module):
        super().__init__()
        self.mean = mean
        self.features = features

    def forward(self, x: torch.Tensor):
        return self.features(x) - self.mean
""",
            lines=(7,),
            instead="""\
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, mean: torch.Tensor | float, features: nn.Module):
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.features = features

    def forward(self, x: torch.Tensor):
        return self.features(x) - self.mean
""",
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Boxes(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.boxes = torch.ones(n)\n\n    def forward(self, x):\n"
            "        boxes = self.boxes.repeat(len(x), 1)\n        boxes = boxes.to(x.device)\n"
            "        return self.mix(x, boxes)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Chosen(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.order = torch.randperm(n)\n        self.table = torch.ones(n, n)\n\n"
            "    def forward(self, x):\n"
            "        return self.table[x.type_as(self.table)], self.join(x[:, self.order])\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Scores(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            '        self.register_buffer("angles", torch.linspace(0, 1, n))\n'
            "        self.waves = torch.linspace(1, 2, n)\n\n"
            "    def forward(self, x):\n"
            "        return score(x, self.angles, waves=self.waves)\n\n\n"
            "def score(x, angles, waves):\n    return x * angles * waves.to(x.device)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Rotary(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.sizes = [n, n]\n        self.weight = nn.Parameter(torch.ones(n))\n"
            "        self.sin = torch.arange(n).sin()\n\n"
            "    def forward(self, x):\n"
            "        return self.mix(x, self.sizes, self.weight, self.sin.to(x.device))\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            facts = module.class_facts(cls)
            if facts is not None and (facts.is_module or _registers(module, cls)):
                yield from self._of_class(module, cls, facts.registered)
        for name, store, buffers in beside_registered(module):
            yield self._reported(module, store, name, buffers, Severity.NOTE)

    def _of_class(
        self, module: Module, cls: ast.ClassDef, registered: frozenset[str]
    ) -> Iterator[Finding]:
        buffers = _buffers(module, cls)
        plain = list(kept_tensors(module, cls, registered))
        usual = 0 < len(plain) <= len(buffers)
        for name, kept in plain:
            sure = usual or all(is_made_here(module, each) for each in kept)
            known = not any(is_unsure(module, e) or is_on_a_gpu(module, e) for e in kept)
            if need_not_move(module, cls) or may_follow(module, cls, name, kept):
                known = False
            severity = None if sure and known else Severity.NOTE
            told = known and (bool(buffers) or meets_the_layers(module, cls, name))
            yield self._reported(module, kept[0], name, buffers, severity, told)

    def _reported(
        self,
        module: Module,
        store: ast.Attribute,
        name: str,
        buffers: Sequence[ast.Call],
        severity: Severity | None,
        told: bool = False,
    ) -> Finding:
        """With other buffers in the class, a tensor that is none is told of."""
        lines = " and ".join(f"line {each.lineno}" for each in buffers[:2])
        are = "1 other is a buffer" if len(buffers) == 1 else f"{len(buffers)} others are buffers"
        others = f"; {are}, see {lines}" if buffers else ""
        held = held_by(module, store)
        is_one = "is" if held is not None and held.what is What.TENSOR else "may be"
        return self.finding(
            module,
            module.statement_of(store),
            f"`{module.text(store)}` {is_one} a tensor in a plain attribute, which `.to()` does "
            f"not move{others}",
            severity=severity,
            trail=tuple((each, "registered as a buffer") for each in buffers[:2]),
            told=told,
        )


def _registers(module: Module, cls: ast.ClassDef) -> bool:
    """It registers buffers with itself, whatever its bases are."""
    return any(
        isinstance(each.func, ast.Attribute) and is_self(each.func.value)
        for each in _buffers(module, cls)
    )


def _buffers(module: Module, cls: ast.ClassDef) -> Sequence[ast.Call]:
    return list(module.calls("register_buffer", inside=cls))
