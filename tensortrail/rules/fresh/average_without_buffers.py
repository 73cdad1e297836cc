from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import matched
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_name, receiver, root_of
from tensortrail.rules.shared.sentences import one_line

_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "LazyBatchNorm")
_WEIGHTS = ("parameters", "named_parameters")
_MIXES = frozenset({"lerp_", "mul_", "add_"})
_OTHER_VALUES = ("buffers", "named_buffers", "update_bn", "load_state_dict", "state_dict")


class AverageWithoutBuffers(Rule):
    """An average of weights leaves out the buffers of a model with batch normalization.

    ## What it does
    Reports a loop over `zip(average.parameters(), model.parameters())` that mixes the weights of
    one into the other, if `average` is used in evaluation (`average.eval()`), the file builds a
    model with batch normalization, and never copies buffers or state dicts.

    Not reported: averages of models without such layers, and `AveragedModel`, which copies them.

    ## Why is this bad?
    The running mean and variance are buffers. Those of the average stay at what the copy began
    with, so the averaged model normalizes by statistics of an untrained one: it scores far worse
    than the model it averages, without an error.

    ## Fix safety
    No fix is offered: buffers may be copied
    (`for a, b in zip(average.buffers(), model.buffers()): a.copy_(b)`) or estimated anew
    (`torch.optim.swa_utils.update_bn`).

    ## References
    - pytorch documentation of `torch.optim.swa_utils.AveragedModel`, `use_buffers`
    """

    code = "NEW341"
    name = "average-without-buffers"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (("BatchNorm", "zip(", "parameters("),)

    bad = (
        Bad(
            """\
import copy
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())

@torch.no_grad()
def update(average, model, decay):
    for old, new in zip(average.parameters(), model.parameters()):
        old.mul_(decay).add_(new, alpha=1 - decay)

def train(batches, held_out):
    model = build()
    average = copy.deepcopy(model)
    for batch in batches:
        model(batch).sum().backward()
        update(average, model, 0.999)
    average.eval()
    return [average(x) for x in held_out]
""",
            lines=(10,),
            instead="""\
import copy
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())

@torch.no_grad()
def update(average, model, decay):
    for old, new in zip(average.parameters(), model.parameters()):
        old.mul_(decay).add_(new, alpha=1 - decay)
    for old, new in zip(average.buffers(), model.buffers()):
        old.copy_(new)

def train(batches, held_out):
    model = build()
    average = copy.deepcopy(model)
    for batch in batches:
        model(batch).sum().backward()
        update(average, model, 0.999)
    average.eval()
    return [average(x) for x in held_out]
""",
        ),
    )
    good = (
        Good(
            """\
import copy
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
average = copy.deepcopy(model).eval()

@torch.no_grad()
def update(decay):
    for old, new in zip(average.parameters(), model.parameters()):
        old.lerp_(new, 1 - decay)
    for old, new in zip(average.buffers(), model.buffers()):
        old.copy_(new)
"""
        ),
        Good(
            """\
import copy
import torch
from torch import nn
from torch.optim.swa_utils import update_bn

def train(batches, held_out):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    average = copy.deepcopy(model)
    for batch in batches:
        model(batch).sum().backward()
        for old, new in zip(average.parameters(), model.parameters()):
            old.data.lerp_(new.data, 0.01)
    update_bn(batches, average)
    average.eval()
    return [average(x) for x in held_out]
"""
        ),
        Good(
            """\
import torch
from torch import nn

def differences(one, other):
    one.eval()
    nn.BatchNorm2d(3)
    for a, b in zip(one.parameters(), other.parameters()):
        print((a - b).abs().max())
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or _copies_buffers(module):
            return
        norm = next((each for each in module.calls(*_NORMS) if _is_of_torch(module, each)), None)
        for loop in module.nodes(ast.For):
            average = _averaged(module, loop) if norm is not None else None
            evaluated = _evaluated(module, average) if average is not None else None
            if average is None or norm is None or evaluated is None:
                continue
            yield self.finding(
                module,
                loop,
                f"the loop averages the weights of `{one_line(module, average)}`, not its buffers: "
                f"the `{one_line(module, norm.func)}` in it keeps the statistics that it was "
                "copied with",
                trail=[(norm, "keeps its statistics in buffers"), (evaluated, "evaluated here")],
            )


def _copies_buffers(module: Module) -> bool:
    return any(True for _ in module.calls(*_OTHER_VALUES))


def _is_of_torch(module: Module, call: ast.Call) -> bool:
    return module.qualified(call.func).startswith("torch.nn.")


def _averaged(module: Module, loop: ast.For) -> ast.expr | None:
    """`average` of a loop that mixes the parameters of another model into its own."""
    over, names = loop.iter, loop.target
    if not isinstance(over, ast.Call) or called(over) != "zip" or len(over.args) != 2:
        return None
    owners = [receiver(e) for e in over.args if isinstance(e, ast.Call) and called(e) in _WEIGHTS]
    if len(owners) != 2 or not isinstance(names, ast.Tuple):
        return None
    first = names.elts[0]
    first = first.elts[-1] if isinstance(first, ast.Tuple) else first
    if not isinstance(first, ast.Name):
        return None
    mixed = any(
        called(call) in _MIXES and is_name(root_of(call.func), first.id)
        for call in module.nodes(ast.Call, loop)
    )
    return owners[0] if mixed else None


def _evaluated(module: Module, average: ast.expr) -> ast.Call | None:
    """`average.eval()`, by that name or a caller's; or at once, where it is copied."""
    names = {module.text(average), *_given_as(module, average)}
    for call in module.calls("eval"):
        owner = receiver(call)
        if owner is None:
            continue
        kept = module.parent(call)
        bound = kept.targets[0] if isinstance(kept, ast.Assign) else owner
        if not names.isdisjoint((module.text(owner), module.text(bound))):
            return call
    return None


def _given_as(module: Module, average: ast.expr) -> Iterator[str]:
    """What the callers of the function give it for the average."""
    function = module.function_of(average)
    for call in module.calls(function.name) if function is not None else ():
        for name, value in matched(function, call) if function is not None else ():
            if is_name(average, name):
                yield module.text(value)
