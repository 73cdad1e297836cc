from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Near, Rule
from tensortrail.rules.defaults import none_by_default
from tensortrail.rules.shared.always_given import is_always_given
from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.given_devices import is_used_as_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode


class NoneAsContext(Rule):
    """`with device:` is used with an argument that is None by default.

    ## What it does
    Reports, as a note, `with device:` with a parameter that is a device or, by default, None, if
    the function neither tests it for None nor replaces it.

    Not reported: functions to which every call in the project passes a device.

    ## Why is this bad?
    Python raises a TypeError, because None is not a context manager. The case is easy to overlook:
    torch's own functions accept `device=None`.

    ## Fix safety
    No fix is offered: the code does not say which device to use by default.

    ## References
    - huggingface/optimum, `exporters/tasks.py`
    """

    code = "DEV662"
    name = "none-as-context"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    proven = False
    triggers = (Near("with ", pattern(rb"[ \t]*with \w+[ \t]*:"), ("torch",)),)

    bad = (
        Bad(
            """\
import torch

def made(build, device: torch.device | None = None):
    if device is not None and isinstance(device, str):
        device = torch.device(device)
    with device:
        return build()
""",
            lines=(6,),
            instead="""\
import torch

def made(build, device: torch.device | None = None):
    device = torch.device("cpu" if device is None else device)
    with device:
        return build()
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def made(build, device: torch.device | None = None):
    if device is None:
        return build()
    with device:
        return build()
"""
        ),
        Good(
            """\
import torch

def made(build, device: torch.device | None = None):
    if device is None:
        device = torch.device("cpu")
    with device:
        return build()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for item in module.nodes(ast.withitem):
            entered, function = item.context_expr, module.function_of(item.context_expr)
            if not isinstance(entered, ast.Name) or function is None:
                continue
            given = none_by_default(function.args, entered.id)
            if given is None or not _is_a_device(module, given, entered):
                continue
            if not _is_settled(module, function, entered):
                yield self.finding(
                    module,
                    entered,
                    f"`{entered.id}` is None if the caller leaves it out, and `with None:` raises "
                    "a TypeError",
                    trail=[(given, "None by default")],
                )


def _is_a_device(module: Module, given: ast.arg, entered: ast.Name) -> bool:
    return names_type(module, given.annotation, DEVICE) or is_used_as_device(module, entered)


def _is_settled(module: Module, function: FunctionNode, entered: ast.Name) -> bool:
    """Something asks for it on the way, or gives it a value where it is None, or always."""
    if any(guard.mentions(entered.id) for guard in module.guards_of(entered)):
        return True
    stores = (each for each in module.uses(entered.id, function) if isinstance(each.ctx, ast.Store))
    for store in stores:
        guards = [each for each in module.guards_of(store) if each.mentions(entered.id)]
        if not any(each.holds and _is_no_none(each.text) for each in guards):
            return True
    return is_always_given(module, function, entered.id)


def _is_no_none(condition: str) -> bool:
    return "isinstance" in condition or "is not None" in condition
