from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._needed import (
    is_passed_elsewhere,
    needed_and_left_out,
    needed_by_namesakes,
    needed_in_file,
)
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
    """A call leaves out the `device` or `dtype` that the function it calls cannot do without.

    ## What it does
    Reports a call of a function, method or class of the project that has a parameter `device`,
    `dtype`, `generator`, `map_location` or the like without a default, if the call does not pass
    it. Where only the name of the method is known, it is a warning: all methods of that name in the
    package have to need it and to accept what is passed, other calls have to pass it, and tensors,
    modules and containers have no method of that name.

    Nothing is reported for a call with `*` or `**`, and for what stands below a decorator that
    may pass arguments of its own.

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
        own = needed_in_file(module)
        for call in module.nodes(ast.Call):
            if called(call) not in own and not is_passed_elsewhere(module, call):
                continue
            for name in needed_and_left_out(module, call):
                yield self.finding(
                    module, call, f"`{module.text(call.func)}` needs `{name}`, and is not given it"
                )
                break
            for name in needed_by_namesakes(module, call):
                yield self.finding(
                    module,
                    call,
                    f"every method `{called(call)}` of the package needs `{name}`, and this call "
                    "does not give it",
                    severity=Severity.WARNING,
                    confidence=Confidence.MEDIUM,
                )
                break
