from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.mends import keyword_given
from tensortrail.rules.shared.never_given import is_never_given
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.recursion import calls_itself, options_left_out
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_OPTIONS = pattern(r"(^|_)(device|devices|dtype|non_blocking|map_location|pin_memory|offload)(_|$)")


class OptionLostInRecursion(Rule):
    """A recursive function leaves out its `device` when it calls itself.

    ## What it does
    Reports a function or method that calls itself without an option about devices or dtypes that it
    was given and reads: `device`, `dtype`, `non_blocking`, `map_location` and the like. The call is
    by name, by `self`, or a method of an item that `isinstance` shows to be of the same class.

    Reported as a note: `non_blocking`, which does not change the values, and an option that no call
    in the project passes.

    Not reported: methods of the same name of other objects, a branch that tests the option, and a
    result that is passed on together with the option.

    ## Why is this bad?
    A nested batch ends on two devices, or with two dtypes: the first level goes where the caller
    said, the levels below use the default.

    ## Fix safety
    Unsafe: it passes the options on, which changes what callers get.

    ## References
    - huggingface/accelerate pull request 607, an option that each level must pass on
    """

    code = "DEV548"
    name = "option-lost-in-recursion"
    severity = Severity.WARNING
    warns = False
    triggers = (
        ("torch", "device"),
        ("torch", "dtype"),
        ("torch", "non_blocking"),
        ("torch", "map_location"),
        ("torch", "pin_memory"),
        ("torch", "offload"),
    )

    bad = (
        Bad(
            """\
import torch

def move(x, device, dtype=None, non_blocking=False):
    if isinstance(x, dict):
        return {k: move(v, device, non_blocking=non_blocking) for k, v in x.items()}
    if isinstance(x, list):
        return [move(each, device) for each in x]
    return x.to(device, dtype=dtype, non_blocking=non_blocking)
""",
            lines=(5, 7),
            fixed="""\
import torch

def move(x, device, dtype=None, non_blocking=False):
    if isinstance(x, dict):
        return {k: move(v, device, non_blocking=non_blocking, dtype=dtype) for k, v in x.items()}
    if isinstance(x, list):
        return [move(each, device, dtype=dtype, non_blocking=non_blocking) for each in x]
    return x.to(device, dtype=dtype, non_blocking=non_blocking)
""",
        ),
        Bad(
            """\
import torch

class Batch(dict):
    def to_torch(self, dtype=None, device="cpu"):
        for key, value in self.items():
            if isinstance(value, Batch):
                value.to_torch(dtype)
            else:
                self[key] = torch.as_tensor(value, dtype=dtype, device=device)
""",
            lines=(7,),
            fixed="""\
import torch

class Batch(dict):
    def to_torch(self, dtype=None, device="cpu"):
        for key, value in self.items():
            if isinstance(value, Batch):
                value.to_torch(dtype, device=device)
            else:
                self[key] = torch.as_tensor(value, dtype=dtype, device=device)
""",
        ),
        Bad(
            """\
import torch

class Node:
    @classmethod
    def made(cls, data, *, device=None):
        below = [cls.made(data["next"])] if "next" in data else []
        return cls(torch.zeros(len(below), device=device), below)
""",
            lines=(6,),
            fixed="""\
import torch

class Node:
    @classmethod
    def made(cls, data, *, device=None):
        below = [cls.made(data["next"], device=device)] if "next" in data else []
        return cls(torch.zeros(len(below), device=device), below)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def train(config, device=None, *, with_torch=True):
    if with_torch:
        from project.torch_engine import train
        return train(config, device=device)
    from project.other_engine import train
    return train(config)
"""
        ),
        Good(
            """\
import torch

class Wrapped:
    def to(self, device=None, dtype=None):
        self.model.to(device)
        self.state = {k: v.to(device) for k, v in self.state.items()}
        return self if dtype is None else self.to(device).cast(dtype)
"""
        ),
        Good(
            """\
import torch

from elsewhere import sample_noise

class Policy:
    def sample_noise(self, shape, device=None):
        return sample_noise(shape) if device is None else sample_noise(shape).to(device)

def move(x, device=None, **options):
    if device is None:
        return move(x)
    if isinstance(x, list):
        return [move(each, device, **options) for each in x]
    if isinstance(x, tuple):
        return torch.stack([move(each) for each in x]).to(device)
    return x.to(device)
"""
        ),
        Good(
            """\
import torch

def move(x, device=None, dtype=None):
    if isinstance(x, list):
        return [move(each, device, dtype) for each in x]
    return x.to(device, dtype)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for function in functions(module):
            for call in module.nodes(ast.Call, function):
                if called(call) != function.name or not calls_itself(module, call, function):
                    continue
                lost = [
                    name
                    for name in options_left_out(module, call, function)
                    if _OPTIONS.search(name) and not _is_seen_to(module, call, function, name)
                ]
                if lost:
                    yield self._found(module, call, function, lost)

    def _found(
        self, module: Module, call: ast.Call, function: FunctionNode, lost: list[str]
    ) -> Finding:
        others = _has_other_callers(module, function, call)
        idle = all(
            each == "non_blocking" or (others and is_never_given(module, function, each))
            for each in lost
        )
        given = ", ".join([lost[0], *(f"{each}={each}" for each in lost[1:])])
        edit = keyword_given(module, call, lost[0], given)
        names = " and ".join(f"`{each}`" for each in lost)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` leaves out {names}, which the function was given: "
            "below the first level the default is used",
            severity=Severity.NOTE if idle else None,
            fixes=[module.fix(f"pass {names} on", Safety.UNSAFE, edit) if edit else None],
        )


def _has_other_callers(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """The project calls it from outside too: of a function of a library nobody knows."""
    last = function.end_lineno or function.lineno
    return any(
        each.path != module.path or not function.lineno <= each.line <= last
        for each in module.calls_in_project(call)
    )


def _is_seen_to(module: Module, call: ast.Call, function: FunctionNode, name: str) -> bool:
    """The branch asks for the option, or the statement hands it to what takes the result."""
    if any(guard.mentions(name) for guard in module.guards_of(call)):
        return True
    for up in module.ancestors(call):
        if up is function or isinstance(up, ast.stmt):
            return False
        given = (
            [*up.args, *(each.value for each in up.keywords)] if isinstance(up, ast.Call) else []
        )
        if any(isinstance(each, ast.Name) and each.id == name for each in given):
            return True
    return False
