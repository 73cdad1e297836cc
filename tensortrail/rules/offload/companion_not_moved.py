from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensortrail.findings import Confidence, Finding, Setting, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.failures import weight
from tensortrail.rules.shared.lines import by_line, where
from tensortrail.rules.shared.operands import Operand, operands

Stayed = Mapping[tuple[str, int], Event]
"""Storage of a plain attribute -> the move of its module, which left it behind."""


class CompanionNotMoved(Rule):
    """A module or a wrapper tensor was moved, and a tensor that belongs to it stayed behind.

    ## What it does
    Speaks of operations that met a tensor which is a plain attribute of a module, after the
    module had been moved away from it; and of wrapper tensors some of whose inner tensors a move
    took along and others not. Found in recorded runs only.

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
    No fix is offered: a buffer is also saved, unless `persistent=False` is given.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "OFF107"
    name = "companion-not-moved"
    severity = Severity.ERROR
    explains = ("DEV502",)

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
            settings=[_buffer(name.rpartition(".")[2])],
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


def _buffer(name: str) -> Setting:
    return Setting(
        library="torch",
        name="register_buffer",
        value=repr(name),
        why="makes it a buffer, which moves with its module; persistent=False keeps it out of "
        "state dicts",
        where="where the module assigns it",
    )
