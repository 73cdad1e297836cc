from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.needed import (
    is_passed_elsewhere,
    needed_and_left_out,
    needed_by_namesakes,
    needed_in_file,
)
from tensortrail.rules.shared.command_lines import is_command
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called

_PROGRAM = """\
import torch


def table(n, *, device):
    return torch.arange(n, device=device)


def rows(x):
    return x + table(len(x)GIVEN)
"""


class NeededDeviceLeftOut(Rule):
    """A call leaves out a `device` or `dtype` that the called function requires.

    ## What it does
    Reports a call of a project function, method or class that does not pass a parameter such as
    `device`, `dtype`, `generator` or `map_location`, if this parameter has no default.

    An error in a program that reads its command line.

    Reported as a note: other files, because the call may never run; and a call for which only the
    name of the method is known, if all methods of that name in the package require the argument and
    other calls pass it.

    Not reported: calls with `*` or `**`, and functions with a decorator that may pass arguments.

    ## Why is this bad?
    The call raises a TypeError.

    ## Fix safety
    No fix is offered: which device is meant can differ from call to call.

    ## References
    - python documentation, "Calls"
    """

    code = "DEV595"
    name = "needed-device-left-out"
    severity = Severity.ERROR
    warns = False
    errors_as = Severity.WARNING
    triggers = (("torch", "device"), ("torch", "dtype"), ("torch", "generator"))
    bad = (
        Bad(
            _PROGRAM.replace("GIVEN", ""),
            lines=(9,),
            instead=_PROGRAM.replace("GIVEN", ", device=x.device"),
        ),
    )
    good = (
        Good(_PROGRAM.replace("GIVEN", ", device=x.device")),
        Good(_PROGRAM.replace("*, device", "device=None").replace("GIVEN", "")),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        own, is_run = needed_in_file(module), is_command(module)
        passed: dict[str, bool] = {}
        for call in module.nodes(ast.Call):
            dotted = module.qualified(call.func)
            if dotted not in passed:  # it is the same for all calls of one name
                passed[dotted] = is_passed_elsewhere(module, call)
            if called(call) not in own and not passed[dotted]:
                continue
            overridden = _is_overridden(module, call)
            for name in needed_and_left_out(module, call) if not overridden else ():
                yield self.finding(
                    module,
                    call,
                    f"`{module.text(call.func)}` requires `{name}`, which is missing here",
                    severity=None if is_run else Severity.WARNING,
                )
                break
            for name in needed_by_namesakes(module, call):
                yield self.finding(
                    module,
                    call,
                    f"every method `{called(call)}` of the package requires `{name}`, which is "
                    "missing here",
                    severity=Severity.WARNING,
                    confidence=Confidence.MEDIUM,
                )
                break


def _is_overridden(module: Module, call: ast.Call) -> bool:
    """`self.start()`, where a class below this one has its own `start`: which is called, and what
    that one requires, is a matter of the object."""
    func, cls = call.func, module.class_of(call)
    if not isinstance(func, ast.Attribute) or module.text(func.value) != "self" or cls is None:
        return False
    below = {cls.name}
    for each in module.nodes(ast.ClassDef):
        if below & {module.text(base) for base in each.bases}:
            below.add(each.name)
            if func.attr in {part.name for part in each.body if isinstance(part, ast.FunctionDef)}:
                return True
    return False
