from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import certainly, excluded
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.modules.inputs_moved import may_have_moved
from tensortrail.rules.devices.shared.written_for.makers import makers_and_callers
from tensortrail.rules.places import FunctionPlaces, Held, Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_CPU, _GPU = "cpu", "cuda"


class CpuMeetsGpu(Rule):
    """An operation uses a tensor that the code puts on the CPU and one that it puts on a GPU.

    ## What it does
    Follows tensors as DEV521 does. Reports an operation on two tensors, if one was put on the CPU
    (`.cpu()`, `.to("cpu")`, `device="cpu"`) and the other on a GPU (`.cuda()`, `device="cuda:0"`)
    on every path to it.

    Not reported: an index on the CPU into a tensor on a GPU, and a tensor on the CPU that may have
    no dimension where a number would do, as both work; and calls of modules in a file whose hooks
    move their inputs.

    ## Why is this bad?
    The operation raises "Expected all tensors to be on the same device" whatever the callers pass.
    On a machine without a GPU the line before it raises already.

    ## Fix safety
    Unsafe, and only offered where both tensors have names: it moves the one on the CPU. It may be
    the other one that should be moved.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV632"
    name = "cpu-meets-gpu"
    severity = Severity.ERROR
    proven = False
    triggers = ((_CPU, _GPU),)
    bad = (
        Bad(
            """\
import torch

def error(scores: torch.Tensor, labels: torch.Tensor):
    scores = scores.cuda()
    labels = labels.cpu()
    return (scores - labels).abs()
""",
            lines=(6,),
            fixed="""\
import torch

def error(scores: torch.Tensor, labels: torch.Tensor):
    scores = scores.cuda()
    labels = labels.cpu()
    return (scores - labels.to(scores.device)).abs()
""",
        ),
        Bad(
            """\
import torch

class Padded:
    def __call__(self, rows: torch.Tensor, missing: int):
        rows = rows.to("cuda:0")
        return torch.cat([rows, self.filling(missing)])

    def filling(self, missing):
        return torch.zeros(missing, 4, device="cpu")
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
import torch

def error(scores: torch.Tensor, labels: torch.Tensor):
    scores = scores.cuda()
    best = scores.argmax(-1).cpu()
    labels = labels.cpu()
    return (best == labels).float().mean()
"""
        ),
        Good(
            """\
import torch

def picked(scores: torch.Tensor, rows: torch.Tensor):
    scores = scores.cuda()
    rows = rows.cpu()
    return scores[rows] * torch.tensor(2.0, device="cpu")
"""
        ),
        Good(
            """\
import torch

def error(scores: torch.Tensor, labels: torch.Tensor, on_gpu: bool):
    labels = labels.cpu()
    if on_gpu:
        labels = labels.cuda()
        scores = scores.cuda()
    return scores - labels
"""
        ),
        Good(
            """\
from torch import nn

def run(x):
    layer = nn.Linear(4, 4).to("cuda")
    layer.register_forward_pre_hook(lambda module, given: (given[0].cuda(),))
    return layer(x.cpu())
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in makers_and_callers(module, _put_on_the_cpu(module)):
            places = module.places(function)
            reported: set[ast.AST] = set()
            for meeting in places.meetings:
                if may_have_moved(module, meeting):
                    continue
                inner = module.function_of(meeting.node) or function
                for here, there in meeting.pairs:
                    found = _apart(inner, meeting, here, there)
                    if found is not None and meeting.node not in reported:
                        reported.add(meeting.node)
                        yield self._reported(module, places, meeting, here, there, found)

    def _reported(
        self,
        module: Module,
        places: FunctionPlaces,
        meeting: Meeting,
        here: Held,
        there: Held,
        found: tuple[Place, Place],
    ) -> Finding:
        host, gpu = found
        return self.finding(
            module,
            meeting.node,
            f"`{one_line(module, meeting.node)}` uses a tensor that is put on the CPU together "
            f"with one that is put on {gpu.subject}",
            trail=(
                (host.by, "put on the CPU"),
                (gpu.by, f"put on {gpu.subject}"),
                (meeting.node, "used together"),
            ),
            fixes=(_moved(module, places, meeting, here, there),),
        )


def _put_on_the_cpu(module: Module) -> Iterator[ast.AST]:
    yield from module.calls(_CPU)
    for each in module.nodes(ast.Constant):
        if each.value == _CPU:
            yield each


def _apart(
    function: FunctionNode, meeting: Meeting, here: Held, there: Held
) -> tuple[Place, Place] | None:
    """The places, if one is the CPU and the other a GPU."""
    host = certainly(here, function, Where.LITERAL)
    gpu = certainly(there, function, Where.LITERAL)
    if host is None or gpu is None or (host.subject, gpu.subject) != (_CPU, _GPU):
        return None
    if excluded(meeting, host) or excluded(meeting, gpu) or is_legal(meeting, here):
        return None
    return host, gpu


def _moved(
    module: Module, places: FunctionPlaces, meeting: Meeting, here: Held, there: Held
) -> Fix | None:
    names = list(module.nodes(ast.Name, meeting.node))
    host = next((each for each in names if places.seen.get(each) == here), None)
    gpu = next((each for each in names if places.seen.get(each) == there), None)
    if host is None or gpu is None:
        return None
    edit = module.insert_after(host, f".to({gpu.id}.device)")
    return module.fix("move it to the GPU", Safety.UNSAFE, edit)
