from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line, doer
from tensortrail.rules.shared.moves import ACCELERATORS
from tensortrail.rules.shared.objects import (
    called,
    is_called,
    is_true,
    keyword,
    loop_around,
    receiver,
    root_of,
)
from tensortrail.rules.shared.operands import called_there
from tensortrail.rules.shared.sentences import one_line

_WAITS = frozenset("synchronize wait item tolist cpu numpy query result join get recv".split())
_WRITES = frozenset({"copy_", "fill_", "zero_", "normal_", "random_", "uniform_", "add_", "mul_"})
CHANGE = (
    "wait before it is written again: `copied = torch.cuda.Event(); copied.record()` after the "
    "copy and `copied.synchronize()` here, or two buffers in turn"
)


class StagingRefilled(Rule):
    """A pinned buffer is refilled while its last copy to the GPU may be under way.

    ## What it does
    Reports a loop that writes into a pinned tensor, made before the loop, and copies it to a GPU
    with `non_blocking=True`, if nothing in the loop waits for the copy: no `synchronize`, no event,
    and nothing that reads a value of the GPU.

    In a run with simulated GPUs, reports the write itself, wherever it stands, if nothing has
    waited for the copy.

    Not reported: a ring of several buffers, and a buffer that is filled from the GPU.

    ## Why is this bad?
    No error is raised. The copy is only queued, and the next round overwrites what it has not read
    yet: the GPU gets a mixture of two batches. Without `non_blocking=True`, or from pageable
    memory, torch waits.

    ## Fix safety
    No fix is offered: an event that is recorded after the copy and waited for before the buffer is
    filled again costs least, or two buffers in turn.

    ## References
    - pytorch/pytorch issue 126946
    - pytorch/tutorials pull request 3261
    """

    code = "XFR615"
    name = "staging-refilled"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (("pin_memory", "non_blocking"),)

    bad = (
        Bad(
            """\
import torch

def upload(batches, shape):
    staging = torch.empty(shape, pin_memory=True)
    for batch in batches:
        staging.copy_(batch)
        yield staging.to("cuda", non_blocking=True)
""",
            lines=(6,),
            instead="""\
import torch

def upload(batches, shape):
    staging = torch.empty(shape, pin_memory=True)
    copied = torch.cuda.Event()
    for batch in batches:
        copied.synchronize()
        staging.copy_(batch)
        there = staging.to("cuda", non_blocking=True)
        copied.record()
        yield there
""",
        ),
        Bad(
            """\
import torch

def upload(rows, there, side):
    staging = torch.zeros(len(there)).pin_memory()
    index = 0
    while index < len(rows):
        staging[:] = rows[index]
        with torch.cuda.stream(side):
            there.copy_(staging, non_blocking=True)
        index += 1
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import torch

def fresh(batches):
    for batch in batches:
        staging = batch.pin_memory()
        yield staging.to("cuda", non_blocking=True)

def waits(batches, shape):
    staging = torch.empty(shape, pin_memory=True)
    for batch in batches:
        staging.copy_(batch)
        there = staging.to("cuda", non_blocking=True)
        print(there.sum().item())

def blocks(batches, shape):
    staging = torch.empty(shape, pin_memory=True)
    for batch in batches:
        staging.copy_(batch)
        yield staging.to("cuda")

def once(batch, shape):
    staging = torch.empty(shape, pin_memory=True)
    staging.copy_(batch)
    return staging.to("cuda", non_blocking=True)

def pageable(batches, shape):
    staging = torch.empty(shape)
    for batch in batches:
        staging.copy_(batch)
        yield staging.to("cuda", non_blocking=True)

def ring(batches, shape):
    staging = [torch.empty(shape, pin_memory=True) for _ in range(2)]
    for index, batch in enumerate(batches):
        staging[index % 2].copy_(batch)
        yield staging[index % 2].to("cuda", non_blocking=True)

def down(batches, shape):
    staging = torch.empty(shape, pin_memory=True)
    there = torch.empty(shape, device="cuda")
    for batch in batches:
        staging.copy_(there)
        yield staging.to("cuda", non_blocking=True)
"""
        ),
    )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        written = (each for each in timeline.events(Did.EARLY) if "writes" in each.facts)
        for events in by_line(written):
            event = events[0]
            wrote = event.op.removeprefix("aten.").partition(".")[0]
            sent = [each for each in timeline.events(Did.MOVE, Did.COPY) if _is_before(each, event)]
            copy = f"its copy to {event.facts.get('device')}"
            copy += f", made by {doer(sent[-1])}," if sent else ""
            yield self.finding_in_run(
                timeline,
                event,
                f"`{wrote}` writes into {called_there(timeline, event)} before {copy} is finished: "
                "on a GPU, the copy may get some of the new values",
                confidence=Confidence.HIGH,
                evidence={"writes": str(len(events))},
                fixes=[Fix(CHANGE, Safety.DISPLAY, ())],
            )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls("to", "cuda", "copy_"):
            source = _sent(module, call)
            loop = loop_around(module, call) if source is not None else None
            if source is None or loop is None:
                continue
            made = _pinned(module, source, loop)
            filled = _filled(module, source, loop) if made is not None else None
            if made is None or filled is None or _waits(module, loop):
                continue
            shown = one_line(module, source)
            yield self.finding(
                module,
                filled,
                f"the pinned `{shown}` is written to while line {call.lineno} of the last round "
                "may still copy it: nothing waits for that copy",
                trail=[(made, "pinned here"), (call, "queued only"), (filled, "written again")],
            )


def _is_before(copy: Event, written: Event) -> bool:
    """It copies from what is written later."""
    return copy.other == written.storage is not None and copy.time <= written.time


def _sent(module: Module, call: ast.Call) -> ast.Name | None:
    """What a copy that is not waited for reads: `x` of `x.to("cuda", non_blocking=True)`."""
    if not is_true(keyword(call, "non_blocking")):
        return None
    source = call.args[0] if called(call) == "copy_" and call.args else receiver(call)
    source = root_of(source) if isinstance(source, (ast.Subscript, ast.Call)) else source
    return source if isinstance(source, ast.Name) else None


def _pinned(module: Module, source: ast.Name, loop: ast.For | ast.While) -> ast.Call | None:
    """The call that makes it, once, before the loop."""
    if any(isinstance(each.ctx, ast.Store) for each in module.uses(source.id, loop)):
        return None
    origins = module.value_of(source).origins
    made = origins[0] if len(origins) == 1 else None
    if not isinstance(made, ast.Call):
        return None
    by_name = called(made) == "pin_memory" or is_true(keyword(made, "pin_memory"))
    return made if by_name else None


def _filled(module: Module, source: ast.Name, loop: ast.For | ast.While) -> ast.AST | None:
    """Where the loop writes into it from the CPU."""
    for assign in module.nodes(ast.Assign, loop):
        target = assign.targets[0]
        into = isinstance(target, ast.Subscript) and _is_of(target.value, source)
        if into and not _is_on_gpu(module, assign.value):
            return assign
    for call in module.nodes(ast.Call, loop):
        into = _is_of(receiver(call), source) and called(call) in _WRITES
        if into and not any(_is_on_gpu(module, each) for each in call.args):
            return call
    return None


def _is_of(node: ast.expr | None, source: ast.Name) -> bool:
    """`x` or a part of it that does not change from round to round."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Slice) and _is_of(node.value, source)
    return isinstance(node, ast.Name) and node.id == source.id


def _is_on_gpu(module: Module, value: ast.expr) -> bool:
    return module.placement_at(value).device in ACCELERATORS


def _waits(module: Module, loop: ast.For | ast.While) -> bool:
    """Something in the loop, or in a function of the file that it calls, lets the CPU wait."""
    for each in module.nodes(ast.Attribute, loop):
        if each.attr in _WAITS and is_called(module, each):
            return True
    for call in module.nodes(ast.Call, loop):
        function = called_here(module, call)
        if function is None and isinstance(call.func, ast.Name) and module.is_of_project(call):
            return True
        if function is not None and any(module.calls(*_WAITS, inside=function)):
            return True
    return False
