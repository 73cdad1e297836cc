from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.kept_in_caches import (
    is_cache,
    is_read_again,
    is_told_the_device,
    key_names,
    lasts,
    made_on,
    returns_tensor,
)
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.shared.annotations import names_type
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode


class CachedDeviceTensor(Rule):
    """A cache returns a tensor on one device for every device.

    ## What it does
    Reports

    - `functools.lru_cache` or `cache` on a function that makes a tensor on the current GPU and has
      no argument that names a device;
    - a dictionary that stores a tensor made on a device under a key without that device, and is
      looked up before.

    ## Why is this bad?
    The next operation raises, or a kernel reads memory of another GPU: the first call decides the
    device, and a model on another GPU, or the same model after a move, gets the old tensor.

    ## Fix safety
    No fix is offered: every place that reads the cache has to use the same key.

    ## References
    - NVIDIA/TransformerEngine pull requests 2395 and 2728
    """

    code = "DEV511"
    name = "cached-device-tensor"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    triggers = (
        ("cache", "device"), ("cache", "torch"), ("CACHE", "device"), ("Cache", "device"),
        (" in self.", "device"), ("self.", ".get(", "device"),
    )  # fmt: skip

    bad = (
        Bad(
            """\
import functools
import torch

@functools.lru_cache(maxsize=None)
def signs(size: int) -> torch.Tensor:
    return torch.ones(size, device="cuda")
""",
            lines=(5,),
            instead="""\
import functools
import torch

@functools.lru_cache(maxsize=None)
def signs(size: int, device: torch.device) -> torch.Tensor:
    return torch.ones(size, device=device)
""",
        ),
        Bad(
            """\
import torch

_lengths_cache = {}

def lengths(batch: int, size: int, device: torch.device):
    if (batch, size) not in _lengths_cache:
        _lengths_cache[(batch, size)] = torch.arange(0, batch * size, size, device=device)
    return _lengths_cache[(batch, size)]
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch

class Positions:
    def __init__(self, dim):
        self.dim = dim
        self.tables = {}

    def table(self, n, device):
        if n not in self.tables:
            steps = torch.arange(n, device=device, dtype=torch.float32)
            self.tables[n] = torch.outer(steps, torch.ones(self.dim, device=device))
        return self.tables[n]
""",
            lines=(11,),
        ),
    )
    good = (
        Good(
            """\
import torch

class Positions:
    def __init__(self):
        self.tables = {}
        self.seen = None

    def table(self, n, device):
        if n not in self.tables or self.tables[n].device != device:
            self.tables[n] = torch.arange(n, device=device)
        return self.tables[n]

    def begin(self, n, device):
        self.seen = {}
        if n not in self.seen:
            self.seen[n] = torch.arange(n, device=device)
        return self.seen[n]
"""
        ),
        Good(
            """\
import torch

_tables = {}

def table(size: int, device: torch.device):
    key = (size, device)
    if key not in _tables:
        _tables[key] = torch.arange(size, device=device)
    return _tables[key]
"""
        ),
        Good(
            """\
import functools

@functools.lru_cache(maxsize=None)
def mask(size: int) -> int:
    return 2 ** size
"""
        ),
        Good(
            """\
import torch

_cache = {}

def lengths(batch: int, device: torch.device):
    key = (batch, device.type, device.index)
    if key not in _cache:
        _cache[key] = torch.arange(batch, device=device)
    return _cache[key]
"""
        ),
        Good(
            """\
import torch

def gather(tensors: dict, device: torch.device):
    moved = {}
    for name, tensor in tensors.items():
        moved[name] = tensor.to(device)
    return moved
"""
        ),
        Good(
            """def generate(model, ids, device, **options):
    if "attention_mask" not in options:
        options["attention_mask"] = ids.ne(0)
    options["attention_mask"] = options["attention_mask"].to(device)
    return model.generate(ids.to(device), **options)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in module.nodes(ast.FunctionDef):
            if any(is_cache(module, each) for each in function.decorator_list):
                yield from self._decorated(module, function)
            yield from self._stored(module, function)

    def _decorated(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        if is_told_the_device(module, function):
            return
        written = [
            call
            for call, said in devices_said(module, function)
            if is_cuda_literal(module, said) or "current_device" in module.text(said)
        ]
        said = names_type(module, function.returns, "torch.Tensor")
        returned = said or returns_tensor(module, function)
        if written and returned:
            yield self.finding(
                module,
                function,
                f"`{function.name}` is cached and makes its tensor on the GPU that is current at "
                "the first call: later calls get the same tensor, whatever their device is",
                severity=Severity.NOTE if module.sets_current_gpu() else None,
                trail=[(written[0], "it is made here")],
            )

    def _stored(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for statement in module.nodes(ast.Assign, function):
            target = statement.targets[0]
            if not isinstance(target, ast.Subscript) or not lasts(module, target.value):
                continue
            device = made_on(module, statement.value)
            if (
                device
                and not key_names(module, target.slice, device, statement.value)
                and is_read_again(module, function, target)
            ):
                yield self.finding(
                    module,
                    statement,
                    f"this tensor is made on `{device}`, but its key in the cache does not contain "
                    "the device: a call for another device gets the same tensor",
                    confidence=Confidence.MEDIUM,
                )
