from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Event, Rule, Storage, Timeline
from tensortrail.rules.shared.failures import errors, weight
from tensortrail.rules.shared.lines import doer, where
from tensortrail.rules.shared.module_paths import in_python
from tensortrail.rules.shared.operands import Operand, called, operands

TYPES = re.compile(
    r"must have the same dtype|to have the same dtype|expected scalar type|should be the same"
    r"|expected m1 and m2|Found dtype",
)
DOUBLE = "float64"
FLOATS = ("float16", "bfloat16", "float32", DOUBLE)


class NumberTypesMeet(Rule):
    """An operation is given floating-point tensors of different types, and refuses them.

    ## What it does
    In a recorded run, reports the exception of such an operation, with the type of each operand,
    the name of a weight, and the line that converted it.

    ## Why is this bad?
    The program ends. Usually a part of the model was converted, and another part, or a layer added
    later, was not.

    ## What you may see
    ```
    RuntimeError: mat1 and mat2 must have the same dtype, but got BFloat16 and Float
    ```

    ## Example
    ```python
    model.head = nn.Linear(16, 2)
    model(x.to(torch.bfloat16))
    ```
    Use instead:
    ```python
    model.head = nn.Linear(16, 2, dtype=torch.bfloat16)
    model(x.to(torch.bfloat16))
    ```

    ## Fix safety
    No fix is offered: only you know which type is meant.

    ## References
    - huggingface/peft documentation "Troubleshooting", dtype-related issues
    """

    code = "DEV614"
    name = "number-types-meet"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, TYPES):
            event = events[0]
            types = list(_types(timeline, event))
            if len({each for _, each in types}) > 1:
                yield self._found(timeline, events, types)

    def _found(
        self, timeline: Timeline, events: Sequence[Event], types: list[tuple[Operand, str]]
    ) -> Finding:
        event = events[0]
        severity, confidence = weight(timeline, events)
        said = ", ".join(f"{called(timeline, each)} is {kind}" for each, kind in types)
        lines = (_converted(timeline, event, each, kind) for each, kind in types)
        made = [line for line in lines if line][:1]
        storages = [each.storage for each, _ in types]
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}` is given different types: {'; '.join([said, *made])}",
            severity=severity,
            confidence=confidence,
            about=next((each for each in storages if each is not None), None),
            met=storages,
            fixes=[Fix(_advice(timeline, types), Safety.DISPLAY, ())],
        )


def _types(timeline: Timeline, event: Event) -> Iterator[tuple[Operand, str]]:
    rows: Any = event.facts.get("operands") or ()
    for operand, row in zip(operands(timeline, event), rows, strict=False):
        kind = str(row.get("dtype", "")) if isinstance(row, Mapping) else ""
        if kind in FLOATS:
            yield operand, kind


def _converted(timeline: Timeline, event: Event, operand: Operand, kind: str) -> str:
    """A parameter is given the converted tensor, which may have been seen to be made."""
    storage: Storage | None = operand.storage
    history = list(timeline.history(storage, event)) if storage else []
    name = called(timeline, operand)
    for did in (Did.COPY, Did.SWAP):
        for each in reversed(history):
            if each.did is did and _converts(each, kind):
                by = f" by {doer(each)}" if did is Did.COPY else where(each)
                return f"{name} was made {kind}{by}"
    return ""


def _converts(event: Event, kind: str) -> bool:
    before, after = event.other, event.storage
    return before is not None and after is not None and after.dtype == kind != before.dtype


def _advice(timeline: Timeline, types: list[tuple[Operand, str]]) -> str:
    """Weights follow the input that comes to them, where only they are known by name."""
    weights = [each for each in types if each[0].storage and timeline.is_named(each[0].storage)]
    others = [each for each in types if each not in weights]
    if weights and others:
        name, kind = called(timeline, weights[0][0]).strip("`"), others[0][1]
        owner = in_python(name.rpartition(".")[0] or name)
        if kind == DOUBLE:
            return (
                f"NumPy counts in {DOUBLE}, and so do tensors made of its arrays: `.float()` of "
                f"what it is given, or `{owner}.to(torch.{kind})`"
            )
        return (
            f"bring both to one type: `{owner}.to(torch.{kind})`, or `.to(torch.{weights[0][1]})` "
            "of what it is given"
        )
    return "bring all of them to one type"
