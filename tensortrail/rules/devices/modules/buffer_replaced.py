from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES
from tensortrail.rules.devices.shared.written_for.preparing import is_for, prepares
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.project_facts import ClassFacts
from tensortrail.rules.shared.attributes import is_read_elsewhere
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MAY_PLACE
from tensortrail.rules.shared.objects import called, is_before, is_self, receiver
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_OF_VALUES = ("tensor", "as_tensor", "from_numpy")


class BufferReplaced(Rule):
    """A buffer is replaced by a tensor on the default device, wherever the module is.

    ## What it does
    Reports `self.name = torch.zeros(...)` in a method of a module that registers `name` as a
    buffer, if the tensor is made without a device and another method uses the buffer.

    Not reported: methods that set a module up, also those that only its constructor calls, a buffer
    that the class moves, a tensor without a dimension or element, and one made of an array, as
    packing does.

    ## Why is this bad?
    On a GPU, the next operation raises "Expected all tensors to be on the same device": the module
    was moved before the method was called, and the new tensor is on the CPU.

    ## Fix safety
    Unsafe: the tensor is made on the device of the one that it replaces.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV640"
    name = "buffer-replaced"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    needs_callers = True
    triggers = tuple(("register_buffer", "self.", name) for name in FACTORIES)

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Codes(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.register_buffer("usage", torch.zeros(k))
        self.register_buffer("codes", torch.randn(k, d))

    def restart(self):
        self.usage = torch.zeros(self.codes.shape[0])

    def forward(self, x):
        nearest = torch.cdist(x, self.codes).argmin(-1)
        self.usage[nearest] += 1
        return self.codes[nearest]
""",
            lines=(11,),
            fixed="""\
import torch
from torch import nn

class Codes(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.register_buffer("usage", torch.zeros(k))
        self.register_buffer("codes", torch.randn(k, d))

    def restart(self):
        self.usage = torch.zeros(self.codes.shape[0], device=self.usage.device)

    def forward(self, x):
        nearest = torch.cdist(x, self.codes).argmin(-1)
        self.usage[nearest] += 1
        return self.codes[nearest]
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Codes(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.register_buffer("usage", torch.zeros(k))
        self.register_buffer("codes", torch.randn(k, d))
        self.register_buffer("steps", torch.zeros(()))
        self.begin(k, d)

    def begin(self, k, d):
        self.codes = torch.rand(k, d)

    def restart(self):
        self.usage = torch.zeros_like(self.usage)
        self.steps = torch.tensor(0.0)

    def clear(self):
        self.usage = torch.empty(0)

    def again(self, k):
        self.usage = torch.zeros(k, device=self.codes.device)

    def later(self, k):
        usage = torch.zeros(k)
        self.usage = usage
        self.usage = self.usage.to(self.codes.device)

    def forward(self, x):
        nearest = torch.cdist(x, self.codes).argmin(-1)
        self.steps += 1
        return self.codes[nearest] * self.usage[nearest] * self.steps
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Table(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.register_buffer("rows", torch.zeros(n))

    def grow(self, n):
        self.rows = torch.zeros(n)

    def forward(self, x):
        return x + self.rows.to(x.device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            facts = module.class_facts(cls)
            if facts is None or not facts.is_module or not facts.registered:
                continue
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and not _runs_early(module, method):
                    yield from self._of_method(module, cls, facts, method)

    def _of_method(
        self, module: Module, cls: ast.ClassDef, facts: ClassFacts, method: FunctionNode
    ) -> Iterator[Finding]:
        stores = list(_stores(module, facts, method))
        seen = module.places(method).seen if stores else {}
        for assign, target in stores:
            held = seen.get(target)
            if held is None or not _is_left_on_cpu(held) or _is_moved(module, cls, assign, target):
                continue
            if is_read_elsewhere(module, cls, target):
                shown = module.text(target)
                yield self.finding(
                    module,
                    assign,
                    f"`{shown}` is a buffer that was moved with the module, but this replaces it "
                    "with a tensor on the default device",
                    trail=[(assign, f"`{one_line(module, assign.value)}` has no device")],
                    fixes=[_made_there(module, assign, target)],
                )


def _sets_up(_: Module, function: FunctionNode) -> bool:
    return sets_up(function)


def _runs_early(module: Module, method: FunctionNode) -> bool:
    """Before the module is moved."""
    return is_for(module, method, _sets_up) or prepares(module, method)


def _stores(
    module: Module, facts: ClassFacts, method: FunctionNode
) -> Iterator[tuple[ast.Assign, ast.Attribute]]:
    for assign in module.nodes(ast.Assign, method):
        for target in assign.targets:
            own = isinstance(target, ast.Attribute) and is_self(target.value)
            if own and isinstance(target, ast.Attribute) and target.attr in facts.registered:
                yield assign, target


def _is_left_on_cpu(held: Held) -> bool:
    """On every path; one without a dimension would be legal with a tensor anywhere."""
    place = held.only
    is_made = place is not None and place.where is Where.DEFAULT and not place.given
    made = place.by if place is not None else None
    is_sized = isinstance(made, ast.Call) and called(made) not in _OF_VALUES
    has_dimensions = held.rank != 0 if is_sized else not held.may_be_scalar
    is_empty = isinstance(made, ast.Call) and any(_is_zero(each) for each in made.args)
    return held.what is What.TENSOR and is_made and has_dimensions and not is_empty


def _is_zero(node: ast.expr) -> bool:
    """`torch.empty(0)`: nothing is computed with it."""
    return isinstance(node, ast.Constant) and node.value == 0


def _is_moved(module: Module, cls: ast.ClassDef, assign: ast.Assign, target: ast.Attribute) -> bool:
    """By the same method afterwards, or wherever the class uses it; or it is made under a device,
    or a new one is registered."""
    if any("device" in module.text(each) for each in module.contexts_of(assign)):
        return True
    method = module.function_of(assign)
    if any(is_before(assign, each) for each in module.calls(*MAY_PLACE, inside=method)):
        return True
    shown = module.text(target)
    moves = (receiver(each) for each in module.calls(*MAY_PLACE, inside=cls))
    return any(each is not None and module.text(each) == shown for each in moves)


def _made_there(module: Module, assign: ast.Assign, target: ast.Attribute) -> Fix | None:
    made = assign.value
    if not isinstance(made, ast.Call) or not module.qualified(made.func).startswith("torch."):
        return None
    given = [*made.args, *made.keywords]
    if not given or any(each.arg in (None, "device") for each in made.keywords):
        return None
    edit = module.insert_after(given[-1], f", device={module.text(target)}.device")
    return module.fix("make it where the old one is", Safety.UNSAFE, edit)
