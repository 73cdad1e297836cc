from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.moved_after_wrap import moved_after_wrap
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line

_NET = """\
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

"""


class MovedAfterWrapping(Rule):
    """A model is moved to a GPU after it was wrapped in `DistributedDataParallel`.

    ## What it does
    Reports `model.to(device)` and `model.cuda()` of what `DistributedDataParallel(net)` gave, if
    `net` was made in the same function without a device and was not moved before.

    Not reported: models that were moved before too, and moves to the CPU.

    ## Why is this bad?
    The wrapper makes the buckets that it collects gradients in when it is made, on the device of
    the weights then. With NCCL it raises at once ("No backend type associated with device type
    cpu"), otherwise `backward()` does: the gradients are on the GPU, and their buckets on the CPU.

    ## Fix safety
    No fix is offered: the model should be moved first (`DDP(net.to(device))`).

    ## References
    - pytorch documentation of `torch.nn.parallel.DistributedDataParallel`: never change the
      parameters of a model after wrapping it
    """

    code = "DEV652"
    name = "moved-after-wrapping"
    severity = Severity.ERROR
    proven = False
    triggers = (("DistributedDataParallel", ".to("), ("DistributedDataParallel", ".cuda("))

    bad = (
        Bad(
            _NET
            + """\
def train(batches, device):
    model = DDP(Net())
    model.to(device)
    for batch in batches:
        model(batch.to(device)).sum().backward()

def build():
    net = Net()
    return DDP(net).cuda()
""",
            lines=(14, 20),
            instead=_NET
            + """\
def train(batches, device):
    model = DDP(Net().to(device))
    for batch in batches:
        model(batch.to(device)).sum().backward()

def build():
    net = Net().cuda()
    return DDP(net)
""",
        ),
    )
    good = (
        Good(
            _NET
            + """\
def again(device):
    net = Net().to(device)
    model = DDP(net)
    return model.to(device)

def later(device):
    net = Net()
    net.to(device)
    model = DDP(net, device_ids=[device])
    model.to(device)

def given(net, device):
    return DDP(net).to(device)

def saved(path):
    model = DDP(Net())
    model.cpu()
    model.to("cpu")

def placed(place, device):
    net = Net()
    place(net)
    return DDP(net).to(device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or module.gpu_made_default() is not None:
            return
        for wrap, inner, made, move in moved_after_wrap(module):
            yield self.finding(
                module,
                move,
                f"`{one_line(module, inner)}` is on the CPU when line {wrap.lineno} wraps it, so "
                "its gradients are collected there: this moves only the weights",
                trail=[
                    (made, "made on the CPU"),
                    (wrap, "wrapped: makes the buckets of its gradients"),
                    (move, "moved too late"),
                ],
            )
