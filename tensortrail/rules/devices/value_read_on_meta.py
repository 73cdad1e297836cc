from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.devices._errors import MIXED, errors, is_mixed, is_move, meta_operand
from tensortrail.rules.devices.origins.computed import computed_from
from tensortrail.rules.shared.failures import NO_VALUES, weight
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import doer
from tensortrail.rules.shared.operands import Operand, called

CHANGE = (
    "load or bring back the weights before their values are read, or ask about the shape, the "
    "device or the identity of the tensor instead"
)


class ValueReadOnMeta(Rule):
    """Code asks a meta tensor for its values.

    ## What it does
    Reports `.item()`, `.tolist()`, `if tensor:`, `torch.equal`, `nonzero` and the like that
    failed because the tensor is on meta, with its name and the line that put it there. Found in
    recorded runs only.

    ## Why is this bad?
    A meta tensor has a shape and no values. In save and export code such questions only fail
    once somebody offloads the model or builds it on meta.

    ## What you may see
    ```
    RuntimeError: Tensor.item() cannot be called on meta tensors
    ```

    ## Example
    ```python
    if torch.equal(model.embed.weight, model.head.weight):
        tie(model)
    ```
    Use instead:
    ```python
    if model.embed.weight is model.head.weight:
        tie(model)
    ```

    ## Fix safety
    No fix is offered: ask about the object, its shape or its name, or bring the values back.

    ## References
    - pytorch/pytorch documentation, "Meta device"
    """

    code = "DEV508"
    name = "value-read-on-meta"
    since = "0.2.0"
    severity = Severity.ERROR
    consequence = True

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
                fixes=[Fix(CHANGE, Safety.DISPLAY, ())],
                evidence={"attempts": str(len(reads))},
            )


def _computed(timeline: Timeline, event: Event, asked: Operand) -> str:
    why = computed_from(timeline, event, asked)
    return f": {why}" if why else ""
