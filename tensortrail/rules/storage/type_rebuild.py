from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_self_or_cls, keyword, receiver
from tensortrail.rules.shared.origins import text_behind


class TypeRebuild(Rule):
    """A parameter is made again by calling its class with a new value.

    ## What it does
    Reports, as a note:

    - `type(p)(value, requires_grad=...)`, `p.__class__(...)` and the same through a variable, where
      the class is that of some parameter;
    - `DTensor.from_local(...)` of a tensor made from the local part of another one, without the
      `shape` and `stride` of the whole, if the rule is selected (`--select STO208`).

    Not reported: such a call inside the class itself.

    ## Why is this bad?
    The call raises, or makes an object with default state: quantized and distributed tensors need
    scales, block sizes or a mesh, not a value alone. Without the shape, a `DTensor` takes all
    shards to be as large as its own; if the last one is smaller, ranks disagree about the whole.

    ## Fix safety
    No fix is offered.

    ## References
    - huggingface/accelerate #3973: offloading rebuilt torchao parameters with their class
    """

    code = "STO208"
    name = "type-rebuild"
    since = "0.2.0"
    severity = Severity.NOTE
    notes = False
    confidence = Confidence.MEDIUM
    triggers = (("requires_grad", "type"), ("requires_grad", "__class__"), ("__dict__", "type"),
                "from_local(")  # fmt: skip

    bad = (
        Bad(
            """\
def move(module, name, value, device):
    old = module._parameters[name]
    cls = type(old)
    module._parameters[name] = cls(value, requires_grad=old.requires_grad).to(device)
""",
            lines=(4,),
            instead="""\
import torch

def move(module, name, value, device):
    old = module._parameters[name]
    fresh = torch.nn.Parameter(value.to(device), requires_grad=old.requires_grad)
    module._parameters[name] = fresh
""",
        ),
        Bad(
            """\
def empty(parameter):
    return type(parameter)(parameter.to("meta"), **parameter.__dict__)
""",
            lines=(2,),
        ),
        Bad(
            """\
from torch.distributed.tensor import DTensor

def state_like(p, make):
    local = make(p.to_local())
    return DTensor.from_local(local, p.device_mesh, p.placements, run_check=False)
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
class Packed:
    def to(self, device):
        return type(self)(self.data.to(device), requires_grad=self.requires_grad)
"""
        ),
        Good(
            """\
import torch

def copy(value, old):
    if type(old) is torch.nn.Parameter:
        return type(old)(value, requires_grad=old.requires_grad)
    return old.clone()
"""
        ),
        Good(
            """\
from torch.distributed.tensor import DTensor

def state_like(p, make):
    local = make(p.to_local())
    whole = {"shape": p.shape, "stride": p.stride()}
    one = DTensor.from_local(local, p.device_mesh, p.placements, **whole)
    return DTensor.from_local(local, p.device_mesh, shape=p.shape, stride=p.stride()), one
"""
        ),
        Good(
            """\
def wrapped(cls, value):
    return cls(value, requires_grad=False)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.nodes(ast.Call):
            rebuilds = keyword(call, "requires_grad") is not None or _copies_dict(call)
            source = _class_of(module, call.func) if rebuilds and call.args else None
            if source is None or is_self_or_cls(source) or _is_told_apart(module, call):
                continue
            yield self.finding(
                module,
                call,
                f"`{module.text(call.func)}` is whatever class `{module.text(source)}` has: one "
                "that needs more than a value (quantized, distributed) raises here or loses its "
                "state",
                told=True,
            )
        for call in module.calls("from_local"):
            if _forgets_the_whole(module, call):
                yield self.finding(
                    module,
                    call,
                    "without `shape` and `stride` of the whole tensor, all shards are taken to be "
                    "as large as this one: an uneven one gives another shape",
                )


def _forgets_the_whole(module: Module, call: ast.Call) -> bool:
    """`DTensor.from_local` of what was computed from another one's local tensor."""
    owner = receiver(call)
    if owner is None or not module.qualified(owner).endswith("DTensor"):
        return False
    if any(each.arg in (None, "shape", "stride") for each in call.keywords) or len(call.args) > 4:
        return False
    local = module.argument(call, 0, "local_tensor")
    made = (local, *module.value_of(local).origins) if local is not None else ()
    return any("to_local" in text_behind(module, each) for each in made)


def _copies_dict(call: ast.Call) -> bool:
    """`**p.__dict__`."""
    return any(
        each.arg is None and isinstance(each.value, ast.Attribute) and each.value.attr == "__dict__"
        for each in call.keywords
    )


def _class_of(module: Module, func: ast.expr) -> ast.expr | None:
    """`p` of `type(p)` and `p.__class__`, through a variable too."""
    for each in (func, *(module.value_of(func).origins if isinstance(func, ast.Name) else ())):
        if isinstance(each, ast.Call) and called(each) == "type" and len(each.args) == 1:
            return each.args[0]
        if isinstance(each, ast.Attribute) and each.attr == "__class__":
            return each.value
    return None


def _is_told_apart(module: Module, call: ast.Call) -> bool:
    """It runs only for classes that are named."""
    words = ("isinstance", "__name__", "type(", "__class__", " is ", " == ", " in ")
    return any(
        guard.holds and any(word in guard.text for word in words)
        and any(hint in guard.text for hint in ("Param", "Tensor", "class", "cls", "type"))
        for guard in module.guards_of(call)
    )  # fmt: skip
