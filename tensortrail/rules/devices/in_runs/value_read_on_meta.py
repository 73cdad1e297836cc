from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.devices.shared.in_runs.computed_on_meta import computed_from, left_on_meta
from tensortrail.rules.devices.shared.in_runs.errors import MIXED, is_mixed, is_move, meta_operand
from tensortrail.rules.devices.shared.in_runs.on_meta import (
    is_made_on_meta,
    is_the_same,
    may_be_caught,
    says_meta,
    values_read,
)
from tensortrail.rules.shared.failures import NO_VALUES, errors, weight
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import doer, place
from tensortrail.rules.shared.objects import called as last_called
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.shared.operands import Operand, called
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.shared.tensor_methods import REDUCING, SAME_DEVICE

CHANGE = (
    "load or bring back the weights before their values are read, or ask about the shape, the "
    "device or the identity of the tensor instead"
)
WITHIN = (
    "read the weights while they are there: `with accelerate.utils.align_module_device(module):` "
    "around the line that reads those of a module"
)

MADE = "{} made it on meta: make it on a device that holds values, such as the CPU"


class ValueReadOnMeta(Rule):
    """The program reads values of a tensor on meta, which has none.

    ## What it does
    In code, reports `.item()`, `.tolist()`, `float(tensor)`, `if tensor:`, `torch.equal`, `nonzero`
    and the like of a tensor that was made on meta on every path, or that a condition says is on
    meta.

    In a recorded run, reports the calls that failed because the tensor is on meta, with its name
    and the line that put it there.

    ## Why is this bad?
    The call raises: a meta tensor has a shape, but no values. In code that saves or exports models,
    this happens only once the model is offloaded or built on meta.

    ## What you may see
    ```
    RuntimeError: Tensor.item() cannot be called on meta tensors
    ```

    ## Fix safety
    No fix is offered: test the object, its shape or its name instead, or load the values before.

    ## References
    - pytorch/pytorch documentation, "Meta device"
    """

    code = "DEV508"
    name = "value-read-on-meta"
    since = "0.2.0"
    severity = Severity.ERROR
    proven = False
    consequence = True
    triggers = ("is_meta", '"meta"', "'meta'")

    bad = (
        Bad(
            """\
def tie(model, table):
    if table.is_meta:
        print("tied to", table.sum().item())
""",
            lines=(3,),
        ),
        Bad(
            """\
import torch

def scale(rows):
    weight = torch.empty(rows, 8, device="meta")
    return float(weight.abs().max())
""",
            lines=(5,),
            instead="""\
import torch

def scale(rows):
    weight = torch.ones(rows, 8)
    return float(weight.abs().max())
""",
        ),
        Bad(
            """\
import torch
from torch import nn

def build(size):
    with torch.device("meta"):
        head = nn.Linear(size, size)
    if torch.equal(head.weight, head.weight.t()):
        return None
    return head
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import torch

def scale(rows):
    weight = torch.empty(rows, 8, device="meta")
    return float(weight.numel()), weight.shape[0]
"""
        ),
        Good(
            """\
def tie(model, table):
    if not table.is_meta:
        print("tied to", table.sum().item())
"""
        ),
        Good(
            """\
import torch
from torch import nn

def fill(x, start):
    with torch.device("meta"):
        head = nn.Linear(8, 8)
    head.to_empty(device="cpu")
    start(head)
    return head(x).mean().item()
"""
        ),
        Good(
            """\
import torch

def has_values(size):
    x = torch.empty(size, device="meta")
    try:
        return x.tolist()
    except NotImplementedError:
        return None
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for node, tensor in values_read(module):
            by, why = _why_on_meta(module, tensor)
            if by is not None and not may_be_caught(module, node):
                asked = "" if node is tensor else f": `{one_line(module, node)}` raises"
                yield self.finding(
                    module,
                    node,
                    f"`{one_line(module, tensor)}` is on meta and has no values to read{asked}",
                    trail=[(by, why)],
                )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, NO_VALUES):
            reads = [
                each
                for each in events
                if not is_move(each)
                and meta_operand(timeline, each)
                and not (is_mixed(timeline, each) and MIXED.search(str(each.facts["message"])))
            ]
            asked = meta_operand(timeline, reads[0]) if reads else None
            if asked is None:
                continue
            event = reads[0]
            severity, confidence = weight(timeline, reads)
            by = put_there(timeline, asked.storage, event) if asked.storage else None
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` asks for values of {called(timeline, asked)}, which is on meta"
                + (f", put there by {doer(by)}" if by else _computed(timeline, event, asked)),
                severity=severity,
                confidence=confidence,
                about=asked.storage,
                fixes=[Fix(_change(timeline, event, asked, by), Safety.DISPLAY, ())],
                evidence={"attempts": str(len(reads))},
            )


def _change(timeline: Timeline, event: Event, asked: Operand, by: Event | None) -> str:
    """Where hooks bring the weights, what brings them for the lines of the program; of a tensor
    that is no weight, the line that made it."""
    storage = asked.storage
    if by is not None and by.did is Did.CREATE and storage and not timeline.is_named(storage):
        return MADE.format(doer(by))
    offloaded = asked.behind and left_on_meta(timeline, event)
    return WITHIN if offloaded and not computed_from(timeline, event, asked) else CHANGE


def _computed(timeline: Timeline, event: Event, asked: Operand) -> str:
    if why := computed_from(timeline, event, asked):
        return f": {why}"
    if (asked.storage is not None and timeline.is_named(asked.storage)) or not asked.behind:
        return ""
    site = asked.behind[0]
    return f": it comes from `{site.source}`{place(site)}{left_on_meta(timeline, event)}"


def _why_on_meta(module: Module, tensor: ast.expr) -> tuple[ast.AST | None, str]:
    made = is_made_on_meta(module, tensor)
    if made is not None:
        return made, "made here, without values"
    subject = tensor
    while isinstance(subject, ast.Call) and last_called(subject) in SAME_DEVICE | REDUCING:
        subject = receiver(subject) or subject.func
    test = says_meta(module, tensor, module.text(subject))
    same = test is not None and is_the_same(module, subject, test)
    return (test if same else None), "the condition says so"
