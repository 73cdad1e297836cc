from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shards._tables import tables
from tensortrail.rules.shared.in_tests import in_tests


class TableSaved(Rule):
    """A buffer that the constructor computes from its settings is saved with the weights.

    ## What it does
    Reports, as a note, `self.register_buffer(name, value)` without `persistent=False`, if the value
    is a table (`arange`, `linspace`, `tril`, a tensor filled in a loop) that is computed from
    arguments of the constructor, and nothing writes the buffer later. Only one is reported for each
    constructor.

    The note is off by default.

    ## Why is this bad?
    Loading a checkpoint of another setting, such as a longer sequence, fails with a size mismatch.
    Where the size is the same, the values in the file replace those of the setting. Files of a
    release that had no such buffer lack the key.

    ## Fix safety
    Unsafe: older files then have one key too many, which a strict load refuses.

    ## References
    - NVIDIA/Megatron-LM: `inv_freq` of a rotary embedding was saved, and required on load
    - huggingface/transformers: `position_ids` are no longer saved
    """

    code = "SHD421"
    name = "table-saved"
    since = "0.2.0"
    severity = Severity.NOTE
    notes = False
    confidence = Confidence.MEDIUM
    triggers = (".register_buffer(",)

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__()
        frequencies = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("frequencies", frequencies)

    def forward(self, positions):
        return torch.outer(positions, self.frequencies)
""",
            lines=(8,),
            fixed="""\
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__()
        frequencies = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, positions):
        return torch.outer(positions, self.frequencies)
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Butterfly(nn.Module):
    def __init__(self, size: int, steps: int):
        super().__init__()
        swaps = torch.empty(steps, size, size)
        for step in range(steps):
            swaps[step] = torch.zeros(size, size).roll(step)
        self.register_buffer("swaps", swaps)

    def forward(self, x):
        return x @ self.swaps[0]
""",
            lines=(10,),
            fixed="""\
import torch
from torch import nn

class Butterfly(nn.Module):
    def __init__(self, size: int, steps: int):
        super().__init__()
        swaps = torch.empty(steps, size, size)
        for step in range(steps):
            swaps[step] = torch.zeros(size, size).roll(step)
        self.register_buffer("swaps", swaps, persistent=False)

    def forward(self, x):
        return x @ self.swaps[0]
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Average(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("weights", torch.linspace(0, 1, size))

    def forward(self, x):
        self.weights.lerp_(x, 0.1)
        return self.weights
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Normalise(nn.Module):
    def __init__(self, mean: list[float]):
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1))

    def forward(self, x):
        return x - self.mean
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Blur(nn.Module):
    def __init__(self, kernel: torch.Tensor):
        super().__init__()
        self.register_buffer("kernel", kernel * torch.arange(kernel.shape[0]))

    def forward(self, x):
        return x * self.kernel
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Mask(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(size, size)), persistent=False)

    def forward(self, x):
        return x * self.mask
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        said: set[ast.AST | None] = set()
        for call, name, settings in tables(module):
            if module.function_of(call) in said:
                continue
            said.add(module.function_of(call))
            shown = ", ".join(f"`{each}`" for each in settings[:3])
            yield self.finding(
                module,
                call,
                f"`{name}` is computed from {shown} and saved: a checkpoint of another setting is "
                "refused, or replaces its values",
                fixes=[self._not_saved(module, call)],
            )

    def _not_saved(self, module: Module, call: ast.Call) -> Fix | None:
        last = module.text(call.args[1])
        edit = module.replace(call.args[1], f"{last}, persistent=False")
        return module.fix("leave it out of the state dict", Safety.UNSAFE, edit)
