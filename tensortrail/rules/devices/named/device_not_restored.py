from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line

_SETTERS = {
    "torch.cuda.set_device": ("torch.cuda.current_device",),
    "torch.set_default_device": ("torch.get_default_device",),
    "torch.set_default_dtype": ("torch.get_default_dtype",),
    "torch.set_default_tensor_type": ("torch.get_default_dtype",),
}
"""Setter of the process -> what a function saves to put it back."""


class DeviceNotRestored(Rule):
    """The current or default device is changed, and not restored if the code in between raises.

    ## What it does
    Reports, as a note, a function that saves the current device, the default device or the default
    dtype, sets another one, and later restores the saved one outside of a `finally`. An exception
    or a `return` in between skips that line.

    The notes are off by default.

    ## Why is this bad?
    After an exception that is caught, such as an out-of-memory error before a retry, all later
    tensors are made on the wrong device or with the wrong dtype. The setting belongs to the whole
    process or thread.

    ## Fix safety
    No fix is offered: a context manager, such as `with torch.device(...)`, is usually better than a
    `finally`.

    ## References
    - pytorch/pytorch documentation of `torch.set_default_device`
    """

    code = "DEV515"
    name = "device-not-restored"
    since = "0.2.0"
    warns = False
    notes = False
    severity = Severity.NOTE
    triggers = tuple(name.rpartition(".")[2] + "(" for name in _SETTERS)

    bad = (
        Bad(
            """\
import torch

def build(make):
    before = torch.get_default_device()
    torch.set_default_device("meta")
    model = make()
    torch.set_default_device(before)
    return model
""",
            lines=(5,),
            instead="""\
import torch

def build(make):
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        return make()
    finally:
        torch.set_default_device(before)
""",
        ),
        Bad(
            """\
import torch

def build(make, ready):
    before = torch.cuda.current_device()
    torch.cuda.set_device(1)
    if ready:
        return make()
    torch.cuda.set_device(before)
    return None
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

def warmed_up(model, batch, number):
    before = torch.cuda.current_device()
    torch.cuda.set_device(number)
    try:
        out = model(batch)
    finally:
        torch.cuda.set_device(before)
    return out
"""
        ),
        Good("import torch\ndef start(rank):\n    torch.cuda.set_device(rank)\n"),
        Good(
            """\
import torch

def build(make):
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.bfloat16)
        return make()
    finally:
        torch.set_default_dtype(before)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*_SETTERS):
            name = module.qualified(call.func)
            if not isinstance(module.parent(call), ast.Expr) or _restores(module, call, name):
                continue
            back = next(
                (
                    each
                    for each in module.later(call, ast.Call)
                    if module.qualified(each.func) == name and _restores(module, each, name)
                ),
                None,
            )
            if back is not None and not _is_safe(module, call, back):
                yield self.finding(
                    module,
                    call,
                    f"`{one_line(module, back)}` does not run if the code in between raises or "
                    "returns: the setting then stays changed for the whole process",
                    trail=[(back, "it is put back here")],
                )


def _restores(module: Module, call: ast.Call, name: str) -> bool:
    """The value was saved before from the getter."""
    if not call.args:
        return False
    getters = _SETTERS[name]
    return any(
        isinstance(each, ast.Call) and module.qualified(each.func) in getters
        for each in module.value_of(call.args[0]).origins
    )


def _is_safe(module: Module, call: ast.Call, back: ast.Call) -> bool:
    """The second call is in a `finally`, or nothing happens between the two."""
    for up in module.ancestors(back):
        if isinstance(up, ast.Try) and any(
            module.statement_of(back) is each or each in list(module.ancestors(back))
            for each in up.finalbody
        ):
            return True
    between = [
        each
        for each in module.later(call, ast.Call)
        if each is not back and each.lineno <= back.lineno
    ]
    return not between
