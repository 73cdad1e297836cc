from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Event, Good, Module, Rule, Storage, Timeline
from tensortrail.rules.devices.shared.moves.already_there import There, already_there, is_to_a_gpu
from tensortrail.rules.devices.shared.moves.leaves import (
    gradients_wanted,
    is_made_a_leaf,
    lost_leaf,
)
from tensortrail.rules.devices.shared.moves.leaves_again import (
    device_given,
    gradient_kept,
    keeps_gradient,
    leaf_again,
    parameter_of_moved,
    target_of,
)
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import doer
from tensortrail.rules.shared.objects import is_true, keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.sentences import one_line


class LeafLostByMove(Rule):
    """A tensor with `requires_grad` is moved, and the gradient of the moved copy is used.

    ## What it does
    In code, reports `torch.zeros(3, requires_grad=True).to(device)` and
    `nn.Parameter(...).to(device)`, also in two lines, if the program reads `.grad` of the result or
    gives it to an optimizer.

    In a recorded run, reports a computed tensor that an optimizer refused, or whose `grad` is None
    where the program fails, and the line that computed it.

    It is an error if the device is a constant that is a GPU.

    Reported as a note: a device that is chosen, which may be the CPU; and a tensor that may be
    there already, because callers give it, because it is computed of tensors on that device, or
    because nobody passes another device than the CPU.

    Not reported: a device or dtype that the tensor was made with, a tensor with `retain_grad()`,
    and parameters of a module (DEV545).

    ## Why is this bad?
    On a GPU, `.grad` is None, or the optimizer raises "can't optimize a non-leaf Tensor": the move
    makes a new tensor, which is not a leaf. On the CPU the move returns the same tensor, so it
    works there.

    ## Fix safety
    Unsafe: the tensor is made on the device, where random numbers differ. Not offered for two
    lines. After a run, a line that makes the tensor a leaf again is offered.

    ## References
    - vinsis/ternary-quantization issue 4
    - Maghoumi/pytorch-softdtw-cuda issue 25
    """

    code = "DEV547"
    name = "leaf-lost-by-move"
    severity = Severity.ERROR
    warns = False
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
        for event in hooks_telling(timeline, "no leaf"):
            yield self._refused(timeline, event, str(event.facts["no leaf"]))

    def _refused(self, timeline: Timeline, event: Event, name: str) -> Finding:
        if "grad of" in event.facts:
            return self._grad_is_none(timeline, event, name)
        by = _moved_by(timeline, event.storage, event, "made a new tensor")
        move = put_there(timeline, event.storage, event) if event.storage is not None else None
        remade = parameter_of_moved(timeline, move.site) if move is not None else None
        called = name or (target_of(timeline, move.site) if move is not None else "")
        return self.finding_in_run(
            timeline,
            event,
            f"`{called or 'what is given'}` is not a leaf{by}, and an optimizer trains leaf "
            "tensors only",
            fixes=[remade or leaf_again(timeline, event, name)],
        )

    def _grad_is_none(self, timeline: Timeline, event: Event, name: str) -> Finding:
        storage = timeline.storage(event.process, event.facts["grad of"])
        by = _moved_by(timeline, storage, event, "made another of it")
        return self.finding_in_run(
            timeline,
            event,
            f"`{name}.grad` is None, as `{name}` was computed and is not a leaf{by}: gradients go "
            "to what it was made of",
            about=storage,
            fixes=[gradient_kept(timeline, event, name, bool(by))],
        )

    def check(self, module: Module) -> Iterator[Finding]:
        told: set[ast.Call] = set()
        for tensor, asked in gradients_wanted(module):
            move = lost_leaf(module, tensor)
            if move is None or move in told:
                continue
            if isinstance(asked, ast.Attribute) and keeps_gradient(module, tensor):
                continue
            if is_made_a_leaf(module, tensor, move):
                continue
            told.add(move)
            wants = "its `grad` is read" if isinstance(asked, ast.Attribute) else "it is optimized"
            yield self._found(module, move, f"{wants} in line {asked.lineno}", asked)

    def _found(self, module: Module, move: ast.Call, what: str, asked: ast.AST) -> Finding:
        return self.finding(
            module,
            move,
            f"`{one_line(module, move)}` returns a tensor that {_lacks(module, move)}, unless "
            f"nothing has to be moved: {what}",
            severity=_severity(module, move),
            trail=[(move, "the move returns a new tensor"), (asked, "here it must be a leaf")],
            fixes=[_made_there(module, move)],
        )


def _severity(module: Module, move: ast.Call) -> Severity | None:
    """Who has seen such a program on a GPU has seen it fail: a device that is chosen is mostly the
    CPU."""
    moved = receiver(move)
    made = behind(module, moved) if moved is not None else move
    if already_there(module, move, made) is not There.ELSEWHERE:
        return Severity.NOTE
    return None if is_to_a_gpu(module, move) else Severity.WARNING


def _lacks(module: Module, move: ast.Call) -> str:
    around = " ".join(module.text(each) for each in module.contexts_of(move))
    return "has no gradient" if "no_grad" in around else "is not a leaf"


def _moved_by(timeline: Timeline, storage: Storage | None, event: Event, how: str) -> str:
    """Who took the leaf's place, as the end of a sentence; nothing where no move did."""
    move = put_there(timeline, storage, event) if storage is not None else None
    return f": {doer(move)} {how}" if move is not None else ""


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
