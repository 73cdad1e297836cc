from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, is_called_on, root_of
from tensortrail.rules.view import FunctionNode

_ABOUT_PLACES = re.compile(r"device|meta|cuda|cpu|is_available|hook|offload")
_THROUGH_PARTS = frozenset({"named_modules", "modules", "children", "apply"})


class ReplacementMovedSometimes(Rule):
    """A module replaces another one, and is moved to its device only under an unrelated condition.

    ## What it does
    Reports `new.to(old.weight.device)` under a test of `old`, in a function that puts `new` in the
    place of `old` with `setattr` on every path.

    Not reported: a test about devices, and a module whose parts are moved in a loop.

    ## Why is this bad?
    On a GPU, the first call of the new module raises "Expected all tensors to be on the same
    device" if the test was false: the module is still on the CPU.

    ## Fix safety
    No fix is offered: the move belongs after the test.

    ## References
    - huggingface/peft: layers put into a model on a GPU were moved only if they were quantized
    """

    code = "DEV564"
    name = "replacement-moved-sometimes"
    triggers = (("setattr(", ".device", ".to("),)

    bad = (
        Bad(
            """\
def replace(parent, name, new, old):
    setattr(parent, name, new)
    new.weight = old.weight
    if getattr(old, "state", None) is not None:
        new.state = old.state
        new.to(old.weight.device)
""",
            lines=(6,),
            instead="""\
def replace(parent, name, new, old):
    setattr(parent, name, new)
    new.weight = old.weight
    if getattr(old, "state", None) is not None:
        new.state = old.state
    new.to(old.weight.device)
""",
        ),
    )
    good = (
        Good(
            """\
def replace(parent, name, new, old):
    setattr(parent, name, new)
    if old.weight.device.type != "meta":
        new.to(old.weight.device)

def in_parts(parent, name, new, old):
    setattr(parent, name, new)
    if getattr(old, "state", None) is not None:
        new.to(old.weight.device)
    for part_name, part in new.named_modules():
        if "adapter" in part_name:
            part.to(old.weight.device)

def only_then(parent, name, new, old):
    if old.state is not None:
        new.to(old.weight.device)
        setattr(parent, name, new)

def by_option(parent, name, new, old, filled):
    if filled:
        new.to(old.weight.device)
    setattr(parent, name, new)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for placed in module.calls("setattr", inside=function):
                move = _moved_sometimes(module, function, placed)
                if move is not None:
                    test = module.guards_of(move)[0].text
                    yield self.finding(
                        module,
                        move,
                        "the new module is put into the model on every path, but moved only if "
                        f"`{test}`",
                        trail=[(placed, "put into the model on every path"), (move, "moved here")],
                    )


def _moved_sometimes(module: Module, function: FunctionNode, placed: ast.Call) -> ast.Call | None:
    if module.function_of(placed) is not function or len(placed.args) != 3:
        return None
    new = placed.args[2]
    if not isinstance(new, ast.Name) or _in_parts(module, function, new.id):
        return None
    moves = [
        each for each in module.calls(*TO_DEVICE, inside=function) if is_called_on(each, new.id)
    ]
    device = module.argument(moves[0], 0, "device") if len(moves) == 1 else None
    if device is None or "device" not in module.text(device):
        return None
    above = {each.text for each in module.guards_of(placed)}
    extra = [e.text for e in module.guards_of(moves[0]) if e.text not in above]
    old = module.text(root_of(device))
    asks_the_old = bool(extra) and all(old in each for each in extra)
    other = not any(_ABOUT_PLACES.search(each) or new.id in each for each in extra)
    return moves[0] if asks_the_old and other else None


def _in_parts(module: Module, function: FunctionNode, name: str) -> bool:
    """The parts of the module are gone through, or it is handed to somebody."""
    for call in module.nodes(ast.Call, function):
        if is_called_on(call, name) and called(call) in _THROUGH_PARTS:
            return True
    return False
