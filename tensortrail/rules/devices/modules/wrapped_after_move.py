from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.moved_then_used import is_written_gpu
from tensortrail.rules.devices.shared.modules.replaced_after_move import (
    moved_too,
    wrapped_after_move,
)
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line

_CLASSES = """\
from torch import nn

class Adapted(nn.Module):
    def __init__(self, model, rank):
        super().__init__()
        self.model = model
        self.extra = nn.Linear(3, rank)

    def forward(self, x):
        return self.model(x) + self.extra(x)

class Scaled(nn.Module):
    def __init__(self, model, scale):
        super().__init__()
        self.model, self.scale = model, scale

    def forward(self, x):
        return self.model(x) * self.scale

"""


class WrappedAfterMove(Rule):
    """A model is wrapped in a module with new layers after it was moved.

    ## What it does
    Reports, as a note, `net = Wrapper(net)` after `net.to(device)`, if the constructor of `Wrapper`
    makes layers or parameters and asks for no device, and nothing moves `net` before it is called:
    an error if the move is written as one to a GPU (`.cuda()`).

    ## Why is this bad?
    The new layers are on the default device, and the call raises "Expected all tensors to be on the
    same device". If everything is on the CPU, it works.

    ## Fix safety
    Unsafe: the wrapper is moved as the model was.

    ## References
    - metatensor/metatrain pull request 408
    """

    code = "DEV639"
    name = "wrapped-after-move"
    severity = Severity.WARNING
    warns = False
    triggers = (("torch", ".to("), ("torch", ".cuda("))
    bad = (
        Bad(
            _CLASSES
            + """\
def run(x, device, adapt):
    model = nn.Linear(3, 4)
    model = model.to(device)
    if adapt:
        model = Adapted(model, 4)
    model = Scaled(model, 0.5)
    return model(x.to(device))
""",
            lines=(24,),
            fixed=_CLASSES
            + """\
def run(x, device, adapt):
    model = nn.Linear(3, 4)
    model = model.to(device)
    if adapt:
        model = Adapted(model, 4).to(device)
    model = Scaled(model, 0.5)
    return model(x.to(device))
""",
        ),
    )
    good = (
        Good(
            _CLASSES
            + """\
def run(x, device):
    model = nn.Linear(3, 4).to(device)
    model = Scaled(model, 0.5)
    return model(x.to(device))
"""
        ),
        Good(
            _CLASSES
            + """\
def run(x, device):
    model = nn.Linear(3, 4).to(device)
    model = Adapted(model, 4)
    model.to(device)
    return model(x.to(device))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for each in wrapped_after_move(module):
            certain = is_written_gpu(module, each.moved) and module.gpu_made_default() is None
            yield self.finding(
                module,
                each.made,
                f"this `{one_line(module, each.made.func)}` makes new layers around "
                f"`{each.model}` after line {each.moved.lineno} moved it: they are on the default "
                f"device when line {each.used.lineno} calls `{each.model}`",
                severity=Severity.ERROR if certain else None,
                trail=(
                    (each.moved, "the model is moved"),
                    (each.made, "made on the default device"),
                    (each.used, "called"),
                ),
                fixes=[moved_too(module, each)],
            )
