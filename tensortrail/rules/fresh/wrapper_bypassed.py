from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.fresh._bypassed import calls_around_wrapper, plain_backwards
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class WrapperBypassed(Rule):
    """Training bypasses the wrapper that averages gradients over the processes.

    ## What it does
    Reports

    - `model.module(...)` and `model.module.method(...)` of a `DistributedDataParallel` model, and
      the same by a name that holds `model.module`, if `backward()` is called on what is computed
      from the result and the function never calls `model(...)` itself;
    - `loss.backward()` in a function that calls `engine.step()` of an engine that
      `deepspeed.initialize` made, as a note: DeepSpeed takes it since the end of 2025.

    Not reported: calls under `torch.no_grad()`, and functions that average gradients themselves.

    ## Why is this bad?
    No error is raised. `DistributedDataParallel` prepares the exchange of gradients in its own
    `forward`: without it every process trains a model of its own, and only that of rank 0 is saved.
    An engine of older DeepSpeed scales and partitions the gradients in its own `backward`.

    ## Fix safety
    No fix is offered: the method that computes the loss should be called by `forward`, and the
    wrapper be called.

    ## References
    - k2-fsa/icefall issue 226
    - jingyaogong/minimind pull request 854
    - OpenTSLM/OpenTSLM pull request 49
    - deepspeedai/DeepSpeed pull request 7665
    """

    code = "NEW323"
    name = "wrapper-bypassed"
    severity = Severity.ERROR
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (
        ("DistributedDataParallel", ".module", "backward("),
        ("deepspeed", "initialize(", "backward("),
    )

    bad = (
        Bad(
            """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(model, loader, rank):
    net = DDP(model.cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        logits = net.module.encode(x.cuda())
        loss = torch.nn.functional.cross_entropy(logits, y.cuda())
        loss.backward()
        optimizer.step()
""",
            lines=(8,),
            instead="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(model, loader, rank):
    net = DDP(model.cuda(), device_ids=[rank])  # its forward() calls encode()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        logits = net(x.cuda())
        loss = torch.nn.functional.cross_entropy(logits, y.cuda())
        loss.backward()
        optimizer.step()
""",
        ),
        Bad(
            """\
import deepspeed
import torch
from torch.nn.parallel import DistributedDataParallel

def train(policy, loader, optimizer):
    bare = policy.module if isinstance(policy, DistributedDataParallel) else policy
    for x in loader:
        out = bare(x)
        loss = out.pow(2).mean()
        loss.backward()
        optimizer.step()

def with_engine(net, loader, config):
    engine, _, _, _ = deepspeed.initialize(model=net, config=config)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(engine(x), y)
        loss.backward()
        engine.step()
""",
            lines=(8, 17),
        ),
        Bad(
            """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def train(model, loader, optimizer):
    net = DistributedDataParallel(model)
    for x in loader:
        loss = net.module.loss_of(x)
        loss.backward()
        optimizer.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
""",
            lines=(8,),
        ),
    )
    good = (
        Good(
            """\
import deepspeed
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

def train(model, loader, rank):
    net = DDP(model.cuda(), device_ids=[rank])
    for x, y in loader:
        loss = net.module.loss_of(net(x), y) + net.module.penalty()
        loss.backward()
    with torch.no_grad():
        print(net.module.encode(x).mean())
    torch.save(net.module.state_dict(), "net.pt")

def by_hand(model, loader, rank):
    net = DDP(model.cuda(), device_ids=[rank])
    for x in loader:
        net.module.loss(x).backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)

def with_engine(net, loader, config):
    engine, _, _, _ = deepspeed.initialize(model=net, config=config)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(engine(x), y)
        engine.backward(loss)
        engine.step()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for each in calls_around_wrapper(module):
            yield self.finding(
                module,
                each.call,
                f"`{one_line(module, each.call.func)}` bypasses the wrapper: the gradients that "
                f"line {each.backward.lineno} computes are not averaged over the processes",
                trail=[(each.wrapped, "wrapped here"), (each.backward, "gradients stay here")],
            )
        for backward, made in plain_backwards(module):
            yield self.finding(
                module,
                backward,
                f"`{one_line(module, backward)}` bypasses the engine of line {made.lineno}: "
                "DeepSpeed before 2026 needs `engine.backward(loss)`",
                severity=Severity.NOTE,
                trail=[(made, "the engine is made here")],
            )
