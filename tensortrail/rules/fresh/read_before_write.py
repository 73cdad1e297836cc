from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Did, Rule, Timeline
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import by_line, doer
from tensortrail.rules.shared.operands import named


class ReadBeforeWrite(Rule):
    """Fresh memory was read before anybody wrote a value into it.

    ## What it does
    Reports an operation that reads a tensor of `torch.empty`, `empty_like`, `new_empty` or
    `Module.to_empty` before anything was written into it. The confidence is high for parameters
    and buffers, and lower for tensors without a name, which may be measured on purpose. Found in
    recorded runs only.

    ## Why is this bad?
    The memory holds whatever was there: results differ from run to run, are NaN on some days
    and look plausible on others. A buffer that is not persistent is in no checkpoint: after
    `to_empty` nothing fills it.

    ## Example
    ```python
    with torch.device("meta"):
        model = Model()
    model.to_empty(device="cuda")
    model.load_state_dict(weights)  # does not fill `rope.inv_freq`, which is not persistent
    ```
    Use instead:
    ```python
    model.to_empty(device="cuda")
    model.load_state_dict(weights)
    model.rope.reset_parameters()
    ```

    ## Fix safety
    No fix is offered: only the model knows what belongs there.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.to_empty` and `torch.empty`
    """

    code = "NEW306"
    name = "read-before-write"
    since = "0.2.0"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in by_line(timeline.events(Did.UNWRITTEN)):
            known = [each for each in events if each.storage and timeline.is_named(each.storage)]
            event = (known or events)[0]
            if event.storage is None:
                continue
            storages = [each.storage for each in known or events if each.storage]
            made = put_there(timeline, event.storage, event)
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` reads {named(timeline, storages)}, into which nothing was written "
                f"since {doer(made) if made else 'it was made'}",
                severity=Severity.ERROR if known else Severity.WARNING,
                confidence=Confidence.HIGH if known else Confidence.MEDIUM,
                evidence={"reads": str(len(events))},
            )
