from __future__ import annotations

import ast
import dataclasses
import os
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.flows import key
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.mends import edited, source_of, statement_of


class AverageOfItself(Rule):
    """An average or a copy of weights shares the memory of the model.

    ## What it does
    In a recorded run, reports `lerp_`, `add_(..., alpha=...)` and `copy_` that write a weight of a
    model from its own memory, where the source names two things: the values of `state_dict()` or
    `parameters()` were kept without a copy, so the average is the model.

    ## Why is this bad?
    The average equals the weights at every step, and no error is raised. Each update also changes
    the model: it is scaled by a little more or less than one.

    ## Example
    ```python
    average = {key: value for key, value in model.state_dict().items()}
    ```
    Use instead:
    ```python
    average = {key: value.clone() for key, value in model.state_dict().items()}
    ```

    ## Fix safety
    Unsafe: the copy needs the memory of the model once more.

    ## References
    - pytorch documentation, `torch.optim.swa_utils`: `AveragedModel` makes a deepcopy
    """

    code = "STO216"
    name = "average-of-itself"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "average"):
            if _names_two(timeline, event):
                yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        weight, name, made = str(event.facts["average"]), "", None
        match event.facts.get("kept"):
            case [str(name), str(file), int(line)]:
                made = Site(file, line)
        kept = f"`{name}`, made at {os.path.basename(made.file)}:{made.line}," if made else "it"
        return self.finding_in_run(
            timeline,
            dataclasses.replace(event, site=made) if made else event,
            f"`{event.op}`{where(event)} writes `{weight}` from its own memory: {kept} holds the "
            "model's tensors themselves and no copies",
            fixes=[_copied(timeline, made)],
        )


def _names_two(timeline: Timeline, event: Event) -> bool:
    """The line calls what is written and what is read differently: not the same tensor twice."""
    site = event.site
    statement = statement_of(timeline, site)
    name = event.op.rpartition(".")[2]
    for node in ast.walk(statement) if statement else ():
        match node:
            case ast.Call(func=ast.Attribute(attr=called, value=owner), args=[given, *_]):
                if called == name:
                    return key(owner) != key(given)
    return False


def _copied(timeline: Timeline, made: Site | None) -> Fix:
    text = "copy the values when they are taken"
    statement = statement_of(timeline, made)
    value = getattr(statement, "value", None)
    if made is None or not isinstance(value, ast.expr):
        return Fix(f"{text}: `.detach().clone()`", Safety.DISPLAY, ())
    inner: ast.expr = value
    if isinstance(value, ast.DictComp):
        inner = value.value
    elif isinstance(value, (ast.ListComp, ast.GeneratorExp)):
        inner = value.elt
    shown = source_of(timeline, made.file, inner)
    if inner is not value:
        new = f"{shown}.detach().clone()"
    elif isinstance(value, ast.Call) and "parameters" in ast.unparse(value):
        new = f"[weight.detach().clone() for weight in {shown}]"
    elif isinstance(value, ast.Call) and "state_dict" in ast.unparse(value):
        new = f"{{key: value.clone() for key, value in {shown}.items()}}"
    else:
        return Fix(f"{text}: `.detach().clone()`", Safety.DISPLAY, ())
    return edited(timeline, f"{text}: `{new}`", timeline.replace(made.file, inner, new))
