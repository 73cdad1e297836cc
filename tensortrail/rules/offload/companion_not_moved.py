from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Storage, Timeline
from tensortrail.rules.offload._companions import (
    Companion,
    Left,
    is_self,
    left_by_move,
    plain_companions,
)
from tensortrail.rules.shared.failures import weight
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line, where
from tensortrail.rules.shared.mends import registered
from tensortrail.rules.shared.operands import Operand, operands

Stayed = Mapping[tuple[str, int], Event]
"""Storage of a plain attribute -> the move of its module, which left it behind."""


class CompanionNotMoved(Rule):
    """A module or a wrapper tensor was moved, and a tensor that belongs to it stayed behind.

    ## What it does
    In code, flags a tensor in a plain attribute of an `nn.Module` that meets a parameter, a buffer
    or an input of the module in an operation, where nothing in the class moves it; and a `to`,
    `cuda` or `cpu` that takes some tensors of its object along and leaves another.

    In a run, reports operations that met a tensor which is a plain attribute of a module, after
    the module had been moved away from it; and wrapper tensors some of whose inner tensors a move
    took along and others not.

    ## Why is this bad?
    `.to()`, `.cuda()` and offloading move parameters and buffers. A tensor that was only assigned
    to `self`, or that a `to` of one's own forgets, stays where it was: the next operation finds
    its operands on two devices.

    ## Example
    ```python
    self.mask = torch.ones(8, 8).tril()
    ```
    Use instead:
    ```python
    self.register_buffer("mask", torch.ones(8, 8).tril(), persistent=False)
    ```

    ## Fix safety
    Unsafe: the attribute becomes a buffer, with `persistent=False` so that state dicts stay as they
    are. A `to` that leaves a tensor has to be completed by hand.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "OFF107"
    name = "companion-not-moved"
    severity = Severity.ERROR
    explains = ("DEV502",)
    triggers = (
        ("self.", "torch", "def forward("),
        ("self.", "torch", "register_buffer"),
        *(("self.", f"def {name}(") for name in ("to", "cuda", "cpu", "xpu", "_apply")),
    )

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))
        self.mask = torch.ones(size, size).tril()

    def forward(self, scores: torch.Tensor):
        return scores * self.mask
""",
            lines=(8,),
            fixed="""\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))
        self.register_buffer("mask", torch.ones(size, size).tril(), persistent=False)

    def forward(self, scores: torch.Tensor):
        return scores * self.mask
""",
        ),
        Bad(
            """\
import torch

class Packed(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.register_buffer("codes", torch.zeros(8, dtype=torch.int32))

    def prepare(self):
        steps = torch.arange(0, 32, 4)
        self.shifts = steps[None].to(self.codes.device)

    def unpack(self):
        return torch.bitwise_right_shift(self.codes.unsqueeze(1), self.shifts)
""",
            lines=(10,),
            fixed="""\
import torch

class Packed(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.register_buffer("codes", torch.zeros(8, dtype=torch.int32))

    def prepare(self):
        steps = torch.arange(0, 32, 4)
        self.register_buffer("shifts", steps[None].to(self.codes.device), persistent=False)

    def unpack(self):
        return torch.bitwise_right_shift(self.codes.unsqueeze(1), self.shifts)
""",
        ),
        Bad(
            """\
import torch

class State:
    def __init__(self, scale: torch.Tensor, table: torch.Tensor):
        self.scale = scale
        self.table = table

    def to(self, device):
        self.scale = self.scale.to(device)
        return self
""",
            lines=(8,),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mask = torch.ones(size, size).tril()

    def forward(self, scores: torch.Tensor):
        return scores * self.mask.to(scores.device)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mask = torch.ones(size, size).tril()

    def _apply(self, fn):
        self.mask = fn(self.mask)
        return super()._apply(fn)

    def forward(self, scores: torch.Tensor):
        return scores * self.mask
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.factor = torch.tensor(0.5)
        self.order = torch.arange(size)

    def forward(self, x: torch.Tensor):
        return x[self.order] * self.factor
"""
        ),
        Good(
            """\
import torch

class State:
    def __init__(self, scale: torch.Tensor, table: torch.Tensor, name: str):
        self.scale = scale
        self.table = table
        self.name = name

    def to(self, device):
        for key, value in self.__dict__.items():
            if isinstance(value, torch.Tensor):
                setattr(self, key, value.to(device))
        self.scale = self.scale.to(device)
        return self
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            for companion in plain_companions(module, cls):
                yield self._plain(module, cls, companion)
            for left in left_by_move(module, cls):
                yield self._left(module, left)

    def _plain(self, module: Module, cls: ast.ClassDef, companion: Companion) -> Finding:
        met = module.text(companion.meets)
        return self.finding(
            module,
            companion.stored,
            f"`self.{companion.name}` is a plain attribute: it stays where it is when "
            f"`{cls.name}` is moved, and then meets `{met}` on another device",
            severity=Severity.WARNING,
            trail=[(companion.operation, f"it meets `{met}` here")],
            fixes=[_as_buffer(module, companion)],
        )

    def _left(self, module: Module, left: Left) -> Finding:
        return self.finding(
            module,
            left.node,
            f"`{left.method.name}` takes {left.moved} along, and the tensor `self.{left.name}` "
            "stays where it was",
            confidence=Confidence.MEDIUM,
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        stayed = {
            (event.process, int(number)): event
            for event in timeline.events(Did.MODULE)
            for number in _numbers(event)
        }
        if stayed:
            for events in by_line(timeline.events(Did.ERROR, Did.MEET)):
                met = [(event, each) for event in events if (each := _met(timeline, event, stayed))]
                if met:
                    yield self._module(timeline, [event for event, _ in met], met[0][1], stayed)
        wrappers = timeline.events(Did.WRAPPER)
        for events in by_line(e for e in wrappers if e.facts.get("question") == "companion"):
            yield self._wrapper(timeline, events[0])

    def _module(
        self, timeline: Timeline, events: list[Event], operand: Operand, stayed: Stayed
    ) -> Finding:
        event, storage = events[0], operand.storage
        assert storage is not None
        moved = stayed[storage.key]
        errors = [each for each in events if each.did is Did.ERROR]
        severity, confidence = (
            weight(timeline, errors) if errors else (Severity.ERROR, Confidence.HIGH)
        )
        name = timeline.name(storage)
        return self.seen(
            timeline,
            event,
            f"`{name}` is on {operand.device}: it is neither a parameter nor a buffer, so it "
            f"stayed there when `{moved.facts.get('class')}` was moved to {_after(moved)}"
            f"{where(moved)}",
            severity=severity,
            confidence=confidence,
            about=storage,
            fixes=[_buffer_in_run(timeline, storage, event, name.rpartition(".")[2])],
            evidence={"operations": str(len(events))},
        )

    def _wrapper(self, timeline: Timeline, event: Event) -> Finding:
        facts = event.facts
        kind = str(facts.get("class")).rpartition(".")[2]
        left = " and ".join(f"`{each}`" for each in facts.get("stayed", ()))
        return self.seen(
            timeline,
            event,
            f"a `{kind}` is moved to {facts.get('went')} by {event.op}, and its {left} stayed on "
            f"{facts.get('device')}",
            confidence=Confidence.HIGH,
        )


def _numbers(event: Event) -> Iterator[int]:
    told = event.facts.get("companions")
    yield from (each for each in told or () if isinstance(each, int))


def _met(timeline: Timeline, event: Event, stayed: Stayed) -> Operand | None:
    for operand in operands(timeline, event):
        moved = stayed.get(operand.storage.key) if operand.storage is not None else None
        if moved is not None and moved.time <= event.time and _elsewhere(timeline, event, operand):
            return operand
    return None


def _elsewhere(timeline: Timeline, event: Event, operand: Operand) -> bool:
    return any(each.device != operand.device for each in operands(timeline, event))


def _after(moved: Event) -> str:
    after = moved.facts.get("after")
    return " and ".join(map(str, after)) if isinstance(after, Mapping) else "another device"


def _as_buffer(module: Module, companion: Companion) -> Fix | None:
    stored = companion.stored
    target = stored.targets[0]
    if not companion.once or not isinstance(target, ast.Attribute) or not is_self(target.value):
        return None
    value = module.text(stored.value)
    edit = module.replace(
        stored, f'self.register_buffer("{companion.name}", {value}, persistent=False)'
    )
    return module.fix("make it a buffer", Safety.UNSAFE, edit)


def _buffer_in_run(timeline: Timeline, storage: Storage, event: Event, name: str) -> Fix:
    made = put_there(timeline, storage, event)
    site = (made.site if made else None) or event.site
    fix = registered(timeline, site, name) if site else None
    what = f"make it a buffer: `self.register_buffer({name!r}, ...)`"
    return fix or Fix(what, Safety.DISPLAY, ())
