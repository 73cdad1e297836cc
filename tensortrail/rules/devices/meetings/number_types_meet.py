from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.converted import converted_by, first_of_type, made_at
from tensortrail.rules.shared.failures import errors, weight
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
        of_weights = {kind for each, kind in types if _is_weight(timeline, each)}
        said = "; ".join(
            _said(timeline, event, each, kind, kind not in of_weights) for each, kind in types
        )
        storages = [each.storage for each, _ in types]
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}` is given different types: {said}",
            severity=severity,
            confidence=confidence,
            about=next((each for each in storages if each is not None), None),
            met=storages,
            fixes=[Fix(_advice(timeline, event, types), Safety.DISPLAY, ())],
        )


def _types(timeline: Timeline, event: Event) -> Iterator[tuple[Operand, str]]:
    rows: Any = event.facts.get("operands") or ()
    for operand, row in zip(operands(timeline, event), rows, strict=False):
        kind = str(row.get("dtype", "")) if isinstance(row, Mapping) else ""
        if kind in FLOATS:
            yield operand, kind


def _is_weight(timeline: Timeline, operand: Operand) -> bool:
    return operand.storage is not None and timeline.is_named(operand.storage)


def _said(timeline: Timeline, event: Event, operand: Operand, kind: str, odd: bool) -> str:
    """What it is, and the line that made it so; of a type that no weight has, which line brought
    it into the run."""
    name = called(timeline, operand)
    if by := converted_by(timeline, operand.storage, event):
        return f"{name} is {kind}, made so {by}"
    if at := made_at(timeline, operand.storage, event):
        return f"{name} is {kind}, made {at}"
    return f"{name} is {kind}{first_of_type(timeline, kind, event) if odd else ''}"


def _advice(timeline: Timeline, event: Event, types: list[tuple[Operand, str]]) -> str:
    """Weights follow the input that comes to them, where only they are known by name; what the
    program made with a type follows the rest."""
    weights = [each for each in types if _is_weight(timeline, each[0])]
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
    made = [(each, at) for each, _ in types if (at := made_at(timeline, each.storage, event))]
    if len(made) == 1:
        (own, at), kinds = made[0], {kind for each, kind in types if each is not made[0][0]}
        if len(kinds) == 1:
            return f"make {called(timeline, own)} with `dtype=torch.{kinds.pop()}` {at}"
    return "bring all of them to one type"
