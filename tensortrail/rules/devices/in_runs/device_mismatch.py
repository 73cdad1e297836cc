from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.devices.shared.in_runs.errors import MIXED, is_mixed, meta_operand
from tensortrail.rules.devices.shared.origins import Case, Origin, origin_of
from tensortrail.rules.shared.failures import errors, weight
from tensortrail.rules.shared.lines import by_line, line_of
from tensortrail.rules.shared.operands import Operand, called, operands
from tensortrail.rules.shared.sentences import first_of

_NAMED = 3
"""Operands on one device that a message names."""


class DeviceMismatch(Rule):
    """An operation was given tensors on different devices.

    ## What it does
    In a recorded run, reports the device of each operand, and the line that put it there, for

    - an exception about operands on different devices;
    - an operation on a CPU tensor and a meta tensor that raises nothing.

    ## Why is this bad?
    The program ends with an exception, or continues with wrong numbers: some operations on a CPU
    and a meta tensor, such as a linear layer without bias, raise nothing and return uninitialised
    memory. Usual causes:

    - a tensor made without a device, or a batch that is not moved;
    - a copy of the model (`copy.deepcopy`, an average of its weights) or an optimizer made before
      the model was moved;
    - a plain attribute that should be a buffer (`tensortrail check` reports it).

    ## What you may see
    ```
    RuntimeError: Expected all tensors to be on the same device, but found at least two devices
    Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same
    RuntimeError: Tensor on device cpu is not on the expected device meta!
    ```

    ## Example
    ```python
    average = copy.deepcopy(model)  # on the CPU
    model.to("cuda")
    for mine, theirs in zip(average.parameters(), model.parameters()):
        mine.lerp_(theirs, 0.01)
    ```
    Use instead:
    ```python
    model.to("cuda")
    average = copy.deepcopy(model)
    for mine, theirs in zip(average.parameters(), model.parameters()):
        mine.lerp_(theirs, 0.01)
    ```

    ## Fix safety
    Unsafe. Offered if one call made or read the tensor in the wrong place, or if one line after a
    move repairs it. Otherwise only you know which operand to move.

    ## References
    - pytorch/pytorch documentation, "Meta device"
    """

    code = "DEV502"
    name = "device-mismatch"
    severity = Severity.ERROR
    consequence = True

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        raised: set[tuple[str, int]] = set()
        for events in errors(timeline, MIXED):
            mixed = [each for each in events if is_mixed(timeline, each)]
            if not mixed:
                continue
            event = mixed[0]
            if at := line_of(event):
                raised.add((at.file, at.line))
            severity, confidence = weight(timeline, mixed)
            yield self._met(timeline, mixed, "raises", severity, confidence)
        for events in by_line(timeline.events(Did.MEET)):
            at = line_of(events[0])
            if at and (at.file, at.line) in raised:
                continue
            silent = [each for each in events if meta_operand(timeline, each)]
            if wrong := [each for each in silent if _result(each) not in ("", "meta")]:
                effect = f"gives uninitialised memory on {_result(wrong[0])}"
                yield self._met(timeline, wrong, effect, Severity.ERROR, Confidence.HIGH)
            elif empty := [each for each in silent if _result(each) == "meta"]:
                effect = "gives a tensor on meta, without values"
                yield self._met(timeline, empty, effect, Severity.NOTE, Confidence.MEDIUM)

    def _met(
        self,
        timeline: Timeline,
        events: Sequence[Event],
        effect: str,
        severity: Severity,
        confidence: Confidence,
    ) -> Finding:
        event = events[0]
        given = operands(timeline, event)
        odd, origin = _explained(timeline, event, given)
        since = f"; {origin.why}" if origin else ""
        places = ", ".join(_places(timeline, given))
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}` {effect}: {places}{since}",
            severity=severity,
            confidence=confidence,
            about=odd.storage if odd else None,
            met=[each.storage for each in given],
            fixes=origin.fixes if origin else (),
            settings=origin.settings if origin else (),
            evidence={"operations": str(len(events))},
        )


def _result(event: Event) -> str:
    """The device of what came out; empty when nothing did."""
    return str(event.facts.get("result") or "")


def _odd(given: Sequence[Operand]) -> Operand | None:
    """The one that is probably in the wrong place: on meta, or else on the CPU."""
    ranked = sorted(given, key=lambda each: (each.device != "meta", each.device != "cpu"))
    return ranked[0] if ranked else None


def _explained(
    timeline: Timeline, event: Event, given: Sequence[Operand]
) -> tuple[Operand | None, Origin | None]:
    """The operand that the finding is about. Of two GPUs neither is the wrong one: the one of which
    the run knows more."""
    first = _odd(given)
    if first is None:
        return None, None
    if first.device in ("meta", "cpu"):
        return first, origin_of(Case(timeline, event, first, _others(given, first)))
    cases = [Case(timeline, event, each, _others(given, each)) for each in given]
    for case in sorted(cases, key=lambda each: not each.placed):
        if found := origin_of(case):
            return case.odd, found
    return first, None


def _others(given: Sequence[Operand], odd: Operand) -> list[str]:
    return list(dict.fromkeys(each.device for each in given if each.device != odd.device))


def _places(timeline: Timeline, given: Sequence[Operand]) -> Iterator[str]:
    for device in dict.fromkeys(each.device for each in given):
        names = list(dict.fromkeys(called(timeline, e) for e in given if e.device == device))
        if len(names) > _NAMED:  # the same layer has many: those with a name of their own first
            names.sort(key=lambda name: not name.startswith("`"))
        verb = "is" if len(names) == 1 else "are"
        yield f"{first_of(names, _NAMED)} {verb} on {device}"
