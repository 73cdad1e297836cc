from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.accepted import accepting, device_at_hand, is_maker
from tensortrail.rules.devices.shared.calls.explained import is_explained, is_followed_by
from tensortrail.rules.project_facts import ProjectCall
from tensortrail.rules.shared import mends
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.sentences import line_of_other
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode

_PASSED_ON = pattern(r"(?:\w+_)?(?:device|dtype|generator|device_map|map_location)|\w*offload\w*")
_ENOUGH, _FOR_EACH_WITHOUT = 4, 12
"""Calls that make a custom, and how many stand against each one that is different."""
_ENOUGH_OF_ALL = 2
"""Calls that make one where there is no other without it."""
_ENOUGH_BY_NAME = 2
"""Of them those that pass it as a keyword."""
_MOVES = MOVES | {"item", "type_as"}
_PROGRAM = """\
import torch


def table(n, device=None):
    return torch.arange(n, device=device)


def first(x):
    return x * table(1, device=x.device)


def second(x):
    return x * table(2, x.device)


def third(x, n):
    return x + table(n, device=x.device) * 2


def fourth(x, n):
    return table(n, device=x.device) - x


def last(x, n, device):
    return x.to(device) * table(nDEVICE)
"""


@unchanging(frozen=True, slots=True)
class Custom:
    """Calls of one function that are given an argument."""

    usual: Sequence[ProjectCall]
    all: int


class ArgumentPassedElsewhere(Rule):
    """A call leaves out an argument that nearly all other calls of the same function pass.

    ## What it does
    Counts how the package calls a function or class, for arguments such as `device`, `dtype`,
    `generator`, `device_map` and options about offloading. Reports a call without the argument if
    the function around it has a value for it, and

    - at least four other calls pass it, and twelve for each one that does not; or
    - two or three others pass it, and all others do.

    Reported as a note, and only if the rule is selected (`--select DEV533`): a missing `dtype`; a
    function that reads files, such as `load_weights(path)`; and where only two or three others pass
    the argument.

    Not reported: a result that is moved, methods, and names that stand for several functions. Calls
    that pass a constant are not counted.

    ## Why is this bad?
    The result is on another device, or has another type, than the results of the other calls. The
    default of the argument is rarely right for this program, or the other calls would not pass it.

    ## Fix safety
    Unsafe: the argument may have been left out on purpose.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV533"
    name = "argument-passed-elsewhere"
    severity = Severity.WARNING
    warns = False
    notes = False
    confidence = Confidence.MEDIUM
    explains = ("DEV526", "DEV528", "DEV534", "DEV541")
    triggers = (("torch", "device"), ("torch", "dtype"), ("torch", "offload"))
    bad = (
        Bad(
            _PROGRAM.replace("DEVICE", ""),
            lines=(25,),
            fixed=_PROGRAM.replace("DEVICE", ", device=device"),
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef table(n, device=None):\n"
            "    return torch.arange(n, device=device)\n\n\n"
            "def run(x, device):\n    return x.to(device) * table(4)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for name, said in _at_hand(module, function):
                for call in accepting(module, function, name, _ENOUGH_BY_NAME):
                    custom = _custom(module, call, name)
                    if custom is not None and not _is_explained(module, call):
                        yield self._reported(module, call, name, said, custom)

    def _reported(
        self, module: Module, call: ast.Call, name: str, said: str, custom: Custom
    ) -> Finding:
        count = len(custom.usual)
        places = " and ".join(line_of_other(module, each) for each in custom.usual[:2])
        return self.finding(
            module,
            call,
            f"{count} of {custom.all} calls of `{module.text(call.func)}` pass `{name}` and this "
            f"one does not, see {places}; `{said}` is at hand",
            severity=None if _is_sure(module, call, name, custom) else Severity.NOTE,
            fixes=(_fix(module, call, name, said),),
        )


def _is_sure(module: Module, call: ast.Call, name: str, custom: Custom) -> bool:
    if "dtype" in name or _reads_files(module, call):
        return False
    return len(custom.usual) >= _ENOUGH


def _is_explained(module: Module, call: ast.Call) -> bool:
    """What it gives is moved, at once or by the name that it is bound to."""
    return is_followed_by(module, call, _MOVES) or is_explained(module, call)


_OF_FILES = pattern(r"^_*(load|read|open|get)_\w*(weight|state|file|checkpoint|tensor|json)")


def _reads_files(module: Module, call: ast.Call) -> bool:
    """`load_weights(path)`: what is read may be moved with the model that takes it."""
    return bool(_OF_FILES.search(module.text(call.func).rpartition(".")[2]))


def _at_hand(module: Module, function: FunctionNode) -> Iterator[tuple[str, str]]:
    """Names of arguments that the function could pass on, and how it can say them."""
    for each in parameters(function):
        if each.arg != "device" and _PASSED_ON.fullmatch(each.arg):
            yield each.arg, each.arg
    device = device_at_hand(module, function)
    if device and "(" not in device:
        yield "device", device


def _custom(module: Module, call: ast.Call, name: str) -> Custom | None:
    if is_maker(module, call):
        return None
    keys = {name, module.parameters_of(call).index(name)}
    calls = [
        each
        for each in module.calls_in_project(call)
        if not each.is_open and not keys & each.written
    ]
    usual = [each for each in calls if keys & each.given]
    others = len(calls) - len(usual) - 1
    enough = _ENOUGH if others else _ENOUGH_OF_ALL
    if len(usual) < enough or len(usual) < others * _FOR_EACH_WITHOUT:
        return None
    near = sorted(usual, key=lambda each: (_distance(module, each), each.path, each.line))
    return Custom(near, len(calls))


def _distance(module: Module, call: ProjectCall) -> int:
    """Small in the same file, then in the same folder."""
    if call.path == module.path:
        return 0
    return 1 if os.path.dirname(call.path) == os.path.dirname(module.path) else 2


def _fix(module: Module, call: ast.Call, name: str, said: str) -> Fix | None:
    edit = mends.keyword_given(module, call, name, said)
    if edit is None:
        return None
    return module.fix(f"pass `{name}={said}`", Safety.UNSAFE, edit)
