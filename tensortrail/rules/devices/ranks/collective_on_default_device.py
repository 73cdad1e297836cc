from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import certainly
from tensortrail.rules.devices.shared.meetings.collectives import (
    collectives,
    names_a_group,
    through_helpers,
)
from tensortrail.rules.devices.shared.named.at_hand import at_hand_in, shown_device
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import Held, Place, What, Where, opposite
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.shared.objects import unpacks
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_OTHER_BACKENDS = ("gloo", "mpi")
_ABOUT_DEVICES = re.compile("device|cuda|cpu|gpu|nccl|backend", re.IGNORECASE)


class CollectiveOnDefaultDevice(Rule):
    """A tensor made without a device is passed to a collective operation of NCCL.

    ## What it does
    Reports a tensor that was made without a device, such as a counter, a flag or a length, and is
    passed to

    - `torch.distributed.all_reduce`, `broadcast`, `all_gather` and the like;
    - `gather` and `reduce` of an `Accelerator`;
    - a function of the project that passes its argument on to one of these.

    Not reported: calls that name a process group; files that name another backend, such as gloo, or
    call `init_process_group` without a backend; calls under a condition about devices.

    ## Why is this bad?
    The tensor is on the CPU, and NCCL takes tensors on GPUs only: the call raises "No backend type
    associated with device type cpu". A test with one process, or with gloo, does not show it.

    ## Fix safety
    Unsafe: the device at hand may not be the one of the process group. Not offered if no device is
    at hand.

    ## References
    - huggingface/trl pull request 3245
    - huggingface/accelerate pull request 3755
    """

    code = "DEV519"
    name = "collective-on-default-device"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.MEDIUM
    triggers = (
        ("torch", "distributed"),
        ("torch", "ccelerat", "gather"),
        ("torch", "ccelerat", "reduce"),
        *(("torch.tensor(", word) for word in ("reduce", "gather", "broadcast")),
    )

    bad = (
        Bad(
            """\
import torch
import torch.distributed as dist

def total(count):
    counts = torch.tensor([count])
    dist.all_reduce(counts)
    return counts.item()
""",
            lines=(5,),
        ),
        Bad(
            """\
import torch

class Trainer:
    def count(self, inputs):
        number = torch.tensor(inputs["position_ids"].size(1))
        inputs = {name: each.to(self.accelerator.device) for name, each in inputs.items()}
        return self.accelerator.gather_for_metrics(number).sum().item(), inputs
""",
            lines=(5,),
            fixed="""\
import torch

class Trainer:
    def count(self, inputs):
        number = torch.tensor(inputs["position_ids"].size(1), device=self.accelerator.device)
        inputs = {name: each.to(self.accelerator.device) for name, each in inputs.items()}
        return self.accelerator.gather_for_metrics(number).sum().item(), inputs
""",
        ),
        Bad(
            """\
import torch
from torch import distributed as dist

def longest(rows, device):
    length = torch.tensor(len(rows))
    found = [torch.zeros((), dtype=torch.long, device=device) for _ in range(2)]
    dist.all_gather(found, length)
    return max(found)
""",
            lines=(5,),
            fixed="""\
import torch
from torch import distributed as dist

def longest(rows, device):
    length = torch.tensor(len(rows), device=device)
    found = [torch.zeros((), dtype=torch.long, device=device) for _ in range(2)]
    dist.all_gather(found, length)
    return max(found)
""",
        ),
        Bad(
            """\
import torch
import torch.distributed as dist

def agreed(paths, chief, device):
    if chief:
        count = torch.tensor([len(paths)])
    else:
        count = torch.zeros(1, dtype=torch.long, device=device)
    dist.broadcast(count, src=0)
    return count.item()
""",
            lines=(6,),
            fixed="""\
import torch
import torch.distributed as dist

def agreed(paths, chief, device):
    if chief:
        count = torch.tensor([len(paths)], device=device)
    else:
        count = torch.zeros(1, dtype=torch.long, device=device)
    dist.broadcast(count, src=0)
    return count.item()
""",
        ),
        Bad(
            """\
import torch
import torch.distributed as dist

def reduced(value, op):
    dist.all_reduce(value, op=op)
    return value

def counted(rows, op):
    return reduced(torch.tensor(len(rows)), op).item()
""",
            lines=(9,),
            instead="""\
import torch
import torch.distributed as dist

def reduced(value, op):
    value = value.cuda()
    dist.all_reduce(value, op=op)
    return value

def counted(rows, op):
    return reduced(torch.tensor(len(rows)), op).item()
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def total(count, group):
    counts = torch.tensor([count])
    dist.all_reduce(counts, group=group)
    return counts.item()
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def start(count):
    dist.init_process_group()
    counts = torch.tensor([count])
    dist.all_reduce(counts)
    return counts.item()
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def total(count, device):
    counts = torch.tensor([count], device=device)
    dist.all_reduce(counts)
    return counts.item()
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def total(count):
    counts = torch.tensor([count])
    if dist.get_backend() == "nccl":
        counts = counts.cuda()
    dist.all_reduce(counts)
    return counts.item()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        calls = {
            call: passed
            for call, passed in (*collectives(module), *through_helpers(module))
            if not _may_take_cpu(module, call)
        }
        for function in outermost(module, calls):
            seen = module.places(function).seen
            for call, passed in calls.items():
                inner = module.function_of(call)
                held = seen.get(passed) if passed is not None else None
                made = _made(held, inner or function) if held is not None else None
                if made is not None and made.by is not None and made.by not in reported:
                    reported.add(made.by)
                    yield self._reported(module, inner or function, call, made)

    def _reported(
        self, module: Module, function: FunctionNode, call: ast.Call, made: Place
    ) -> Finding:
        assert made.by is not None
        shown = one_line(module, call.func)
        return self.finding(
            module,
            made.by,
            f"`{one_line(module, made.by)}` is on the default device, usually the CPU, but line "
            f"{call.lineno} passes it to `{shown}`: NCCL takes only tensors on a GPU",
            severity=Severity.NOTE if module.names_other_backend() else None,
            trail=[(made.by, "made without a device"), (call, "passed to other processes")],
            fixes=[_made_there(module, function, made.by)],
        )


def _made(held: Held, function: FunctionNode) -> Place | None:
    """Where it is by default, on every path or on one of two, if on the other it was put where
    the collective runs."""
    made = certainly(held, function, Where.DEFAULT)
    if made is not None or held.what is not What.TENSOR or len(held.places) != 2:
        return made
    first, second = held.in_order
    for place, instead in ((first, second), (second, first)):
        apart = bool(place.given) and instead.given == opposite(place.given)
        elsewhere = instead.where in (Where.DEVICE, Where.SELF, Where.OF)
        if place.where is Where.DEFAULT and apart and elsewhere:
            return None if _ABOUT_DEVICES.search(place.given) else place
    return None


def _may_take_cpu(module: Module, call: ast.Call) -> bool:
    """A group is named, or the file names another backend."""
    if names_a_group(call):
        return True
    *_, file = module.ancestors(call)
    return module.once(_names_other_backend, file) or module.once(_leaves_the_backend, file)


def _leaves_the_backend(module: Module, file: ast.AST) -> bool:
    """`init_process_group()` without a backend starts gloo for the CPU and NCCL for GPUs."""
    return any(
        module.argument(each, 0, "backend") is None and not unpacks(each)
        for each in module.calls("torch.distributed.init_process_group")
    )


def _names_other_backend(module: Module, file: ast.AST) -> bool:
    return any(
        isinstance(each.value, str) and any(word in each.value for word in _OTHER_BACKENDS)
        for each in module.nodes(ast.Constant, file)
    )


def _made_there(module: Module, function: FunctionNode, made: ast.AST) -> Fix | None:
    at_hand = at_hand_in(module, function)
    if not isinstance(made, ast.Call) or not made.args or at_hand is None:
        return None
    if module.function_of(made) is not function or module.text(made.func).endswith("Tensor"):
        return None
    edit = device_given(module, made, shown_device(module, at_hand))
    return module.fix("make it where the collective runs", Safety.UNSAFE, edit) if edit else None
