from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import ACCELERATORS, TO_DEVICE
from tensortrail.rules.shared.objects import called, given, receiver
from tensortrail.rules.shared.optimizers import is_optimizer, model_behind
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.unchanging import unchanging

_WRITTEN_CPU = re.compile(r"""^(torch\.device\()?["'](cpu|meta)["']""")


class OptimizerBeforeMove(Rule):
    """The state of an optimizer is loaded before its model is moved to a GPU.

    ## What it does
    Reports `optimizer.load_state_dict(...)`, if the optimizer was made from the parameters of a
    model and the function moves this model later: `model.to(device)`, `model.cuda()`. The same for
    other objects made from `model.parameters()` that load a state, such as moving averages, as a
    note: an optimizer that is not of torch may move its state at each step.

    Not reported: a model that was also moved before, a state that is moved by hand, and schedules
    of the learning rate, whose state is numbers.

    ## Why is this bad?
    The first step on a GPU after a resume raises "Expected all tensors to be on the same device":
    the state is loaded to the CPU, where the parameters are, and does not move with them. Without a
    resume everything works.

    ## Fix safety
    No fix is offered: the move belongs before the line that makes the optimizer.

    ## References
    - pytorch documentation, `torch.optim`: move a model before its optimizer is made
    - coqui-ai/TTS, training of vocoders; pytorch/pytorch issue 2830
    """

    code = "DEV543"
    name = "optimizer-before-move"
    severity = Severity.ERROR
    proven = False
    triggers = tuple(("load_state_dict(", "parameters(", f".{name}(") for name in sorted(TO_DEVICE))

    bad = (
        Bad(
            """\
import torch

def main(args, model, checkpoint):
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    if args.resume:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    if args.cuda:
        model.cuda()
    return optimizer
""",
            lines=(7,),
            instead="""\
import torch

def main(args, model, checkpoint):
    if args.cuda:
        model.cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    if args.resume:
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
    return optimizer
""",
        ),
        Bad(
            """\
import torch

def resumed(net, average, path, device):
    kept = average(net.parameters(), decay=0.99)
    kept.load_state_dict(torch.load(path, map_location="cpu"))
    net = net.to(device)
    return net, kept
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

def main(model, other, checkpoint, device):
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint)
    model = model.to(device)
    other.to(device)
    return optimizer

def by_hand(model, checkpoint, device):
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint)
    model.to(device)
    for state in optimizer.state.values():
        state["exp_avg"] = state["exp_avg"].to(device)

def saved(model, checkpoint):
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint)
    model.to("cpu")
    model.to(torch.bfloat16)
"""
        ),
        Good(
            """\
import torch
from torch.optim.lr_scheduler import LambdaLR

def made_there(net, checkpoint, device):
    model = net().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(checkpoint["optimizer"])
    return model.to(device), optimizer

def planned(model, checkpoint, device):
    optimizer = torch.optim.Adam(model.parameters())
    plan = LambdaLR(optimizer, lambda step: 1 / (step + 1))
    plan.load_state_dict(checkpoint["plan"])
    return model.to(device), plan
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for load in module.calls("load_state_dict"):
            owner = receiver(load)
            made = _made_of_parameters(module, load, owner) if owner is not None else None
            if made is None or owner is None or _is_moved_by_hand(module, load, owner):
                continue
            if _is_schedule(module, made.call):
                continue  # its state is numbers
            move = _moved_after(module, made, load)
            if move is not None and _is_used_after(module, owner, move):
                yield self.finding(
                    module,
                    load,
                    f"the state is loaded to the device of `{made.model}`, and line {move.lineno} "
                    f"moves `{made.model}` without it",
                    severity=None if is_optimizer(module, made.call) else Severity.NOTE,
                    trail=[
                        (made.call, f"`{module.text(owner)}` is made from its parameters"),
                        (load, "the state is loaded"),
                        (move, f"`{one_line(module, move)}` leaves the state behind"),
                    ],
                )


def _is_schedule(module: Module, made: ast.Call) -> bool:
    """It is given the optimizer: an object that makes steps, or loads its own state."""
    stepping = {
        module.text(owner)
        for each in module.calls("step", "zero_grad", "load_state_dict")
        if (owner := receiver(each)) is not None
    }
    named = module.qualified(made.func).startswith("torch.optim.lr_scheduler.")
    return named or any(module.text(each) in stepping for each in given(made))


@unchanging(frozen=True, slots=True)
class Made:
    """What was made of the parameters of a model."""

    call: ast.Call
    model: str


def _made_of_parameters(module: Module, load: ast.Call, owner: ast.expr) -> Made | None:
    """`torch.optim.Adam(model.parameters())` for the optimizer, bound before in the function."""
    name = module.text(owner)
    for assign in module.earlier(load, ast.Assign):
        if name not in map(module.text, assign.targets):
            continue
        call = assign.value
        model = model_behind(module, call) if isinstance(call, ast.Call) else ""
        return Made(call, model) if model and isinstance(call, ast.Call) else None
    return None


def _moved_after(module: Module, made: Made, load: ast.Call) -> ast.Call | None:
    """The first move of the model after the load, if none came before."""
    if any(_moves(module, call, made.model) for call in module.earlier(load, ast.Call)):
        return None
    if any(_is_made_there(module, each, made.model) for each in module.earlier(load, ast.Assign)):
        return None
    function = module.function_of(load)
    later = (call for call in module.later(load, ast.Call) if module.function_of(call) is function)
    return next((call for call in later if _moves(module, call, made.model)), None)


def _is_used_after(module: Module, owner: ast.expr, move: ast.Call) -> bool:
    """An attribute may be used by other methods, a name only further below."""
    if not isinstance(owner, ast.Name):
        return True
    return any(each.id == owner.id for each in module.later(move, ast.Name))


def _moves(module: Module, call: ast.Call, model: str) -> bool:
    """To another device than the CPU."""
    owner = receiver(call)
    return owner is not None and module.text(owner) == model and _is_to_a_device(module, call)


def _is_made_there(module: Module, assign: ast.Assign, model: str) -> bool:
    """`model = Net().cuda()`"""
    call = assign.value
    named = model in map(module.text, assign.targets)
    return named and isinstance(call, ast.Call) and _is_to_a_device(module, call)


def _is_to_a_device(module: Module, call: ast.Call) -> bool:
    return called(call) in ACCELERATORS or (called(call) == "to" and _is_device(module, call))


def _is_device(module: Module, call: ast.Call) -> bool:
    said = next((each.value for each in call.keywords if each.arg == "device"), None)
    said = said or (call.args[0] if call.args else None)
    said = behind(module, said) if said is not None else None
    if said is None or _WRITTEN_CPU.search(module.text(said)):
        return False
    if module.value_of(said).constant in ("cpu", "meta"):
        return False
    is_type = isinstance(said, ast.Attribute) and module.qualified(said).startswith("torch.")
    return not is_type and "dtype" not in module.text(said)


def _is_moved_by_hand(module: Module, load: ast.Call, owner: ast.expr) -> bool:
    """The function reaches for `optimizer.state`, or moves the optimizer."""
    function, name = module.function_of(load), module.text(owner)
    for node in module.nodes(ast.Attribute, function):
        if module.text(node.value) == name and node.attr in TO_DEVICE | {"state"}:
            return True
    return False
