from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from typing import NamedTuple

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.made_where_moved import is_moved_elsewhere
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.shared.functions import parameter_names
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVE_METHODS
from tensortrail.rules.shared.placeholders import is_placeholder
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Kind


class _Stored(NamedTuple):
    name: str
    node: ast.Attribute


class StaleDeviceAttribute(Rule):
    """A module stores the device it was built on, and uses it after the module was moved.

    ## What it does
    Reports an `nn.Module` with weights that stores a device given to `__init__` and uses this
    attribute in `forward` to make or move tensors, if no method of the class changes the attribute
    when the module is moved.

    Reported by default only if the file makes an object of the class and moves it to another device
    than the one it passed.

    ## Why is this bad?
    After `module.to("cuda:1")` or offloading, the operation that combines the tensor with a weight
    raises: the attribute still names the old device.

    ## Fix safety
    No fix is offered: only you can say which tensor the method should follow.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.to`
    """

    code = "DEV514"
    name = "stale-device-attribute"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    notes = False
    needs_callers = True
    triggers = (("device", "def forward("),)

    bad = (
        Bad(
            """\
import torch

class Encoder(torch.nn.Module):
    def __init__(self, size, device="cuda"):
        super().__init__()
        self.device = device
        self.embed = torch.nn.Embedding(size, size)

    def forward(self, ids: torch.Tensor):
        positions = torch.arange(ids.shape[1], device=self.device)
        return self.embed(ids + positions)
""",
            lines=(10,),
            instead="""\
import torch

class Encoder(torch.nn.Module):
    def __init__(self, size, device="cuda"):
        super().__init__()
        self.device = device
        self.embed = torch.nn.Embedding(size, size)

    def forward(self, ids: torch.Tensor):
        positions = torch.arange(ids.shape[1], device=ids.device)
        return self.embed(ids + positions)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

class Encoder(torch.nn.Module):
    def __init__(self, size, device="cuda"):
        super().__init__()
        self.device = device
        self.embed = torch.nn.Embedding(size, size)

    def forward(self, ids: torch.Tensor):
        if ids.numel() == 0:
            return torch.empty(0, device=self.device)
        return self.embed(ids)
"""
        ),
        Good(
            """\
import torch

class Encoder(torch.nn.Module):
    def __init__(self, size, device="cuda"):
        super().__init__()
        self.device = device
        self.embed = torch.nn.Embedding(size, size)

    def to(self, device):
        self.device = device
        return super().to(device)

    def forward(self, ids: torch.Tensor):
        return self.embed(ids.to(self.device))
"""
        ),
        Good(
            """\
import torch

class Encoder(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed = torch.nn.Embedding(size, size)

    @property
    def device(self):
        return self.embed.weight.device

    def forward(self, ids: torch.Tensor):
        return self.embed(ids.to(self.device))
"""
        ),
        Good(
            """\
import torch

class Loader:
    def __init__(self, device="cuda"):
        self.device = device

    def forward(self, batch: torch.Tensor):
        return batch.to(self.device)
"""
        ),
        Good(
            """\
import torch

class Split(torch.nn.Module):
    def __init__(self, first, second, device):
        super().__init__()
        self.device = device
        self.first = torch.nn.Linear(4, 4).to(device)

    def forward(self, x: torch.Tensor):
        self.first.to(self.device)
        return self.first(x)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            computing = [e for e in cls.body if isinstance(e, ast.FunctionDef) and _computes(e)]
            said = {name for each in computing for name in _said(module, each)}
            if not said:
                continue
            stored = {each.name: each for each in _devices(module, cls, said)}
            if not stored or not _has_weights(module, cls):
                continue
            for function in computing:
                yield from self._used(module, cls, function, stored)

    def _used(
        self, module: Module, cls: ast.ClassDef, function: FunctionNode, stored: dict[str, _Stored]
    ) -> Iterator[Finding]:
        for call, said in devices_said(module, function):
            if not isinstance(said, ast.Attribute) or module.text(said.value) != "self":
                continue
            if said.attr not in stored or _moves_a_module(module, call):
                continue
            if is_placeholder(module, call):
                continue  # nothing is computed with what holds nothing
            yield self.finding(
                module,
                said,
                f"`self.{said.attr}` keeps the device that `__init__` was given: after "
                f"`{cls.name}` is moved, this tensor and the weights are on different devices",
                confidence=Confidence.MEDIUM,
                severity=_weight(module, stored[said.attr].node),
                trail=[(stored[said.attr].node, "it is stored here and never changed")],
            )


def _weight(module: Module, stored: ast.Attribute) -> Severity | None:
    """A note, unless the file makes such a module and moves it to another device than it gave."""
    init, told = module.function_of(stored), _told_by(module, stored)
    moved = init is not None and any(is_moved_elsewhere(module, init, each) for each in told)
    return None if moved else Severity.NOTE


def _told_by(module: Module, stored: ast.Attribute) -> list[str]:
    """The parameters that the stored device is made of."""
    init, statement = module.function_of(stored), module.parent(stored)
    if init is None or not isinstance(statement, ast.Assign):
        return []
    names = [each.id for each in ast.walk(statement.value) if isinstance(each, ast.Name)]
    return [each for each in names if each in parameter_names(init)]


def _said(module: Module, function: FunctionNode) -> Iterator[str]:
    """Names of attributes that are used as a device."""
    yield from (e.attr for _, e in devices_said(module, function) if isinstance(e, ast.Attribute))


def _devices(module: Module, cls: ast.ClassDef, said: Container[str]) -> Iterator[_Stored]:
    """`self.device = device` in `__init__`, assigned nowhere else."""
    stored = [] if MOVE_METHODS & _own_methods(cls) else _stored_once(module, cls)
    candidates = [(each, value) for each, value in stored if each.name in said]
    facts = module.class_facts(cls) if candidates else None
    if facts is None or not facts.is_module:
        return
    for each, value in candidates:
        if each.name not in facts.methods and _is_device(module, value):
            yield each


def _stored_once(module: Module, cls: ast.ClassDef) -> Iterator[tuple[_Stored, ast.expr]]:
    stores: dict[str, list[ast.Attribute]] = {}
    for node in module.nodes(ast.Attribute, cls):
        if isinstance(node.ctx, ast.Store) and module.text(node.value) == "self":
            stores.setdefault(node.attr, []).append(node)
    for name, nodes in stores.items():
        function = module.function_of(nodes[0])
        statement = module.parent(nodes[0])
        if len(nodes) > 1 or function is None or function.name != "__init__":
            continue
        if isinstance(statement, ast.Assign) and _may_be_device(module, function, statement.value):
            yield _Stored(name, nodes[0]), statement.value


def _own_methods(cls: ast.ClassDef) -> set[str]:
    return {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}


def _may_be_device(module: Module, function: FunctionNode, value: ast.expr) -> bool:
    """A parameter, or `torch.device(...)`."""
    if isinstance(value, ast.Call):
        return module.qualified(value.func) == "torch.device"
    given = (*function.args.args, *function.args.kwonlyargs)
    return isinstance(value, ast.Name) and any(each.arg == value.id for each in given)


def _is_device(module: Module, value: ast.expr) -> bool:
    """Of what may be one: a parameter is asked what it holds."""
    if isinstance(value, ast.Call):
        return True
    kinds = module.value_of(value).kinds
    return bool(kinds) and kinds <= {Kind.DEVICE, Kind.DEVICE_STRING}


def _has_weights(module: Module, cls: ast.ClassDef) -> bool:
    """The class holds parameters or modules that a move takes along."""
    facts = module.class_facts(cls)
    if facts is not None and facts.registered:
        return True
    return any(
        module.value_of(node).kind is Kind.MODULE
        for node in module.nodes(ast.Attribute, cls)
        if isinstance(node.ctx, ast.Store) and module.text(node.value) == "self"
    )


def _computes(function: ast.FunctionDef) -> bool:
    return function.name == "forward"


def _moves_a_module(module: Module, call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and (
        module.kind_of(call.func.value) is Kind.MODULE or isinstance(module.parent(call), ast.Expr)
    )
