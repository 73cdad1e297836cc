from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.devices._leaves import (
    device_given,
    gradient_kept,
    gradients_wanted,
    keeps_gradient,
    leaf_again,
    lost_leaf,
)
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import doer
from tensortrail.rules.shared.objects import is_true, keyword, receiver
from tensortrail.rules.shared.sentences import one_line


class LeafLostByMove(Rule):
    """A tensor that is to get a gradient is moved, and the gradient is asked of the moved one.

    ## What it does
    Flags `torch.zeros(3, requires_grad=True).to(device)`, also in two lines, where `.grad` of the
    result is read or an optimizer is given it; `nn.Parameter(...).to(device)` likewise. A device or
    dtype that the factory was given already, and a tensor whose `retain_grad()` is called, are not
    flagged. What a module keeps as its parameter is a matter of DEV545. In a recorded run: what an
    optimizer refused as it was computed, or whose `grad` is None for that reason when the program
    fails, with the line that moved it.

    ## Why is this bad?
    On the CPU the move changes nothing and gives back the same tensor. On a GPU it makes another,
    which is no leaf: its `grad` is None, and an optimizer refuses it ("can't optimize a non-leaf
    Tensor"). What was tested on the CPU fails on a GPU, or does not learn.

    ## Fix safety
    Unsafe: random numbers are drawn on the device then. Two lines get no fix. After a run a line
    that makes a leaf of it is offered.

    ## References
    - vinsis/ternary-quantization issue 4
    - Maghoumi/pytorch-softdtw-cuda issue 25
    """

    code = "DEV547"
    name = "leaf-lost-by-move"
    severity = Severity.ERROR
    triggers = (
        ("requires_grad", ".grad"),
        ("requires_grad", "optim"),
        ("Parameter(", "optim"),
        ("Parameter(", ".grad"),
    )

    bad = (
        Bad(
            """\
import torch

def fit(loss_of, device):
    x = torch.zeros(3, requires_grad=True).to(device)
    optimizer = torch.optim.SGD([x], lr=0.1)
    loss_of(x).backward()
    optimizer.step()
""",
            lines=(4,),
            fixed="""\
import torch

def fit(loss_of, device):
    x = torch.zeros(3, requires_grad=True, device=device)
    optimizer = torch.optim.SGD([x], lr=0.1)
    loss_of(x).backward()
    optimizer.step()
""",
        ),
        Bad(
            """\
import torch
from torch import optim

def slope(loss_of, gpu):
    x = torch.zeros(3, requires_grad=True)
    if gpu:
        x = x.cuda()
    loss_of(x).backward()
    return x.grad

def scales(sizes, device):
    found = [torch.ones(n, requires_grad=True).to(device) for n in sizes]
    return optim.Adam([{"params": found, "lr": 0.1}])
""",
            lines=(7, 12),
            fixed="""\
import torch
from torch import optim

def slope(loss_of, gpu):
    x = torch.zeros(3, requires_grad=True)
    if gpu:
        x = x.cuda()
    loss_of(x).backward()
    return x.grad

def scales(sizes, device):
    found = [torch.ones(n, requires_grad=True, device=device) for n in sizes]
    return optim.Adam([{"params": found, "lr": 0.1}])
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def fit(loss_of, device):
    x = torch.zeros(3, device=device, requires_grad=True)
    y = torch.zeros(3).to(device).requires_grad_()
    z = torch.zeros(3, device=device, requires_grad=True).to(device)
    loss_of(x, y, z).backward()
    return torch.optim.SGD([x, y, z]), x.grad
"""
        ),
        Good(
            """\
import torch

def slope(loss_of, device):
    x = torch.zeros(3, requires_grad=True)
    moved = x.to(device)
    loss_of(moved).backward()
    return x.grad

def kept(loss_of, device):
    x = torch.zeros(3, requires_grad=True).to(device)
    x.retain_grad()
    loss_of(x).backward()
    return x.grad

def single(loss_of):
    x = torch.zeros(3, requires_grad=True).to(torch.float32)
    loss_of(x).backward()
    return x.grad
"""
        ),
    )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            if "no leaf" in event.facts:
                yield self._refused(timeline, event, str(event.facts["no leaf"]))

    def _refused(self, timeline: Timeline, event: Event, name: str) -> Finding:
        if "grad of" in event.facts:
            return self._grad_is_none(timeline, event, name)
        moved = put_there(timeline, event.storage, event) if event.storage else None
        by = f": {doer(moved)} made another of it" if moved is not None else ""
        return self.finding_in_run(
            timeline,
            event,
            f"`{name or 'what is given'}` was computed and is no leaf{by}: an optimizer trains "
            "what the program made",
            fixes=[leaf_again(timeline, event, name)],
        )

    def _grad_is_none(self, timeline: Timeline, event: Event, name: str) -> Finding:
        storage = timeline.storage(event.process, event.facts["grad of"])
        moved = put_there(timeline, storage, event) if storage is not None else None
        by = f": {doer(moved)} made another of it" if moved is not None else ""
        return self.finding_in_run(
            timeline,
            event,
            f"`{name}.grad` is None, as `{name}` was computed and is no leaf{by}: gradients go to "
            "what it was made of",
            about=storage,
            fixes=[gradient_kept(timeline, event, name, moved is not None)],
        )

    def check(self, module: Module) -> Iterator[Finding]:
        told: set[ast.Call] = set()
        for tensor, asked in gradients_wanted(module):
            move = lost_leaf(module, tensor)
            if move is None or move in told:
                continue
            if isinstance(asked, ast.Attribute) and keeps_gradient(module, tensor):
                continue
            told.add(move)
            wants = "its `grad` is read" if isinstance(asked, ast.Attribute) else "it is optimized"
            yield self._found(module, move, f"{wants} in line {asked.lineno}", asked)

    def _found(self, module: Module, move: ast.Call, what: str, asked: ast.AST) -> Finding:
        return self.finding(
            module,
            move,
            f"`{one_line(module, move)}` makes a tensor that is no leaf, unless it is there "
            f"already: {what}",
            trail=[(move, "the moved tensor is another one"), (asked, "here it must be a leaf")],
            fixes=[_made_there(module, move)],
        )


def _made_there(module: Module, move: ast.Call) -> Fix | None:
    device, made = device_given(module, move), receiver(move)
    if not device or not isinstance(made, ast.Call):
        return None
    start = module.text(made)
    if is_true(keyword(made, "requires_grad")) and keyword(made, "device") is None:
        if module.qualified(made.func).count(".") != 1:  # a factory is torch.name
            return None
        text = f"{start.rstrip()[:-1].rstrip().rstrip(',')}, device={device})"
        return module.fix("make it on the device", Safety.UNSAFE, module.replace(move, text))
    return None
