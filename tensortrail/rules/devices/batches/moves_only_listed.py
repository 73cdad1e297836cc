from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Near, Rule
from tensortrail.rules.devices.shared.batches.dropped_comprehensions import (
    LINE,
    dropped_comprehensions,
)
from tensortrail.rules.devices.shared.batches.filled_for_nothing import PUT_IN, filled_for_nothing
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.sentences import one_line


class MovesOnlyListed(Rule):
    """Tensors are moved in a comprehension, and the list or dict of the moved ones is dropped.

    ## What it does
    Reports a statement that is only `{k: v.to(device) for k, v in batch.items()}`, or
    `[t.to(device) for t in (inputs, target)]` of names that a model or a loss is given afterwards.
    Also reports a list or dict that a loop fills with moved tensors, and that no line reads.

    Not reported: lists of modules, which move in place.

    ## Why is this bad?
    The batch is where it was, and the model raises "Expected all tensors to be on the same device":
    `to` returns new tensors, and nothing keeps them. A state dict that should be on the CPU is
    saved from the GPU.

    ## Fix safety
    No fix is offered: the names or the batch should be bound to the result
    (`batch = {k: v.to(device) for k, v in batch.items()}`), or the new dict be returned.

    ## References
    - nvidia-cosmos/cosmos-rl pull request 562
    - pytorch documentation of `torch.Tensor.to`
    """

    code = "DEV654"
    name = "moves-only-listed"
    severity = Severity.ERROR
    proven = False
    triggers = (
        *(Near(f".{word}(", LINE) for word in sorted(MOVES)),
        *(Near(f".{word}(", PUT_IN) for word in sorted(MOVES)),
    )

    bad = (
        Bad(
            """\
import torch

def step(model, batch, device):
    {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}
    return model(**batch)

def error(net, loader, loss_of, device):
    net.to(device)
    for inputs, target in loader:
        [
            each.to(device, non_blocking=True)
            for each in (inputs, target)
        ]
        print(loss_of(net(inputs), target))
""",
            lines=(4, 10),
            instead="""\
import torch

def step(model, batch, device):
    batch = {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}
    return model(**batch)

def error(net, loader, loss_of, device):
    net.to(device)
    for inputs, target in loader:
        inputs, target = [
            each.to(device, non_blocking=True)
            for each in (inputs, target)
        ]
        print(loss_of(net(inputs), target))
""",
        ),
        Bad(
            """\
import torch

def to_host(state: dict):
    on_host = {}
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            on_host[key] = value.cpu()
        else:
            on_host[key] = value
    return state
""",
            lines=(7,),
            instead="""\
import torch

def to_host(state: dict):
    on_host = {}
    for key, value in state.items():
        if isinstance(value, torch.Tensor):
            on_host[key] = value.cpu()
        else:
            on_host[key] = value
    return on_host
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def counted(state: dict):
    on_host = {}
    for key, value in state.items():
        on_host[key] = value.cpu()
    return len(on_host)

def kept(states: dict):
    moved = []
    for value in states.values():
        moved.append(value.cpu())
    states.update(zip(states, moved))

def placed(models, device):
    done = []
    for model in models:
        model.eval()
        done.append(model.to(device))
    return models
"""
        ),
        Good(
            """\
def place(models, nets, device):
    [model.to(device) for model in models]
    [net.to(device) for net in (nets.first, nets.second)]

def moved(batch, device):
    return {k: v.to(device) for k, v in batch.items()}
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for statement, move, whole in dropped_comprehensions(module):
            yield self.finding(
                module,
                statement,
                f"`{one_line(module, move)}` returns new tensors, which are not used: "
                f"`{one_line(module, whole)}` still holds the old ones",
                trail=[(move, "each is moved, and the result is not used")],
            )
        for filled in filled_for_nothing(module):
            name = module.text(filled.made.targets[0])
            yield self.finding(
                module,
                filled.move,
                f"the moved tensors are stored in `{name}`, which no line reads: "
                f"`{one_line(module, filled.whole)}` still holds the old ones",
                trail=[(filled.made, f"`{name}` is made here")],
            )
