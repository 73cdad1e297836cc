from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.moves.lost_in_hooks import Lost, lost_in_hooks
from tensortrail.rules.shared.hooks import BEFORE
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.sentences import one_line


class HookChangesNothing(Rule):
    """A hook makes a new output or new inputs and does not return them.

    ## What it does
    Reports a function that is registered by `register_forward_hook` or
    `register_forward_pre_hook`, if it makes something new of the output or the inputs that it is
    given (`out = out.to(device)`, `out + vector`), nobody reads that, and the function returns
    nothing.

    Not reported: hooks that write into what they are given, store it elsewhere, or return
    something on some path.

    ## Why is this bad?
    The hook has no effect: torch replaces the output by what a hook returns, and leaves it as it
    was if that is None. What should have been moved is on the old device, which raises "Expected
    all tensors to be on the same device" at the next layer; what should have been steered, scaled
    or masked is as before, without an error.

    ## Fix safety
    No fix is offered: the hook should return the new value, or write into the old one.

    ## References
    - pytorch documentation of `torch.nn.Module.register_forward_hook`
    """

    code = "DEV650"
    name = "hook-changes-nothing"
    severity = Severity.ERROR
    proven = False
    triggers = ("register_forward_",)

    bad = (
        Bad(
            """\
def to_second(layer, given, output):
    output = output.to("cuda:1")

def run(model, x):
    model.first.register_forward_hook(to_second)
    return model(x)
""",
            lines=(2,),
            instead="""\
def to_second(layer, given, output):
    return output.to("cuda:1")

def run(model, x):
    model.first.register_forward_hook(to_second)
    return model(x)
""",
        ),
        Bad(
            """\
from functools import partial

class Mover:
    def __init__(self, device):
        self.device = device

    def __call__(self, module, args):
        args = tuple(each.to(self.device) for each in args)

def steered(model, vector, device):
    def hook(module, args, output):
        hidden = output[0]
        hidden + vector

    model.block.register_forward_hook(hook)
    model.register_forward_pre_hook(Mover(device))

def scale(factor, module, args, output):
    if factor != 1:
        scaled = output * factor

def scaled(model, factor):
    model.register_forward_hook(partial(scale, factor))
""",
            lines=(8, 13, 20),
        ),
    )
    good = (
        Good(
            """\
from functools import partial

kept = []

def to_second(layer, given, output):
    return output.to("cuda:1")

def keep(layer, given, output):
    found = output.detach().cpu()
    kept.append(found)

def in_place(layer, given, output):
    output *= 2
    output.mul_(3)
    output[0] = output[0] * 2

def names(name, layer, given, output):
    kept.append((name, output + 1))

def mean(layer, given, output):
    global last
    last = output.float()

def run(model, x):
    model.first.register_forward_hook(to_second)
    model.last.register_forward_hook(keep)
    model.last.register_forward_hook(in_place)
    model.last.register_forward_hook(partial(names, "last"))
    model.last.register_forward_hook(mean)
    return model(x)
"""
        ),
        Good(
            """\
def steered(model, vector):
    def hook(module, args, output):
        if isinstance(output, tuple):
            return (output[0] + vector, *output[1:])
        output = output + vector
        return output

    model.block.register_forward_hook(hook)

def counted(model, totals):
    def hook(module, args, output):
        total = 0
        for each in output:
            total = total + each.numel()
        totals.append(total)

    model.block.register_forward_hook(hook)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        told = set()
        for lost in lost_in_hooks(module):
            if id(lost.at) not in told:
                told.add(id(lost.at))
                yield self._found(module, lost)

    def _found(self, module: Module, lost: Lost) -> Finding:
        before = called(lost.hook.registered) == BEFORE
        kept = "the inputs of the module stay" if before else "the output of the module stays"
        return self.finding(
            module,
            lost.at,
            f"`{one_line(module, lost.at)}` makes a new value that this hook does not return: "
            f"{kept} as before",
            trail=[(lost.hook.registered, "registered as a hook"), (lost.at, "made and dropped")],
        )
