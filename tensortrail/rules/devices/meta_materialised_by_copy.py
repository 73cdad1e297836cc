from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.devices._errors import errors, is_move, meta_operand
from tensortrail.rules.shared.failures import NO_VALUES, weight
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import doer
from tensortrail.rules.shared.operands import called


class MetaMaterialisedByCopy(Rule):
    """A meta tensor or module was moved to a device as if it had data.

    ## What it does
    Speaks of moves and copies that failed because their source is on meta, names the parameter,
    and says who put it there. Found in recorded runs only.

    ## Why is this bad?
    There is nothing to copy. Memory has to be made on the device and then be filled from a
    checkpoint; hooks that bring offloaded weights back have to run first.

    ## Example
    ```python
    with torch.device("meta"):
        model = Model()
    model.to("cuda")
    ```
    Use instead:
    ```python
    model.to_empty(device="cuda")
    model.load_state_dict(weights)
    ```

    ## Fix safety
    For display only: the memory that `to_empty` makes has to be filled.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.to_empty`
    """

    code = "DEV507"
    name = "meta-materialised-by-copy"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, NO_VALUES):
            moves = [each for each in events if is_move(each) and meta_operand(timeline, each)]
            source = meta_operand(timeline, moves[0]) if moves else None
            if source is None:
                continue
            event = moves[0]
            severity, confidence = weight(timeline, moves)
            by = put_there(timeline, source.storage, event) if source.storage else None
            yield self.seen(
                timeline,
                event,
                f"`{event.op}` has nothing to copy: {called(timeline, source)} is on meta"
                + (f", put there by {doer(by)}" if by else ""),
                severity=severity,
                confidence=confidence,
                about=source.storage,
                fixes=[_to_empty(timeline, event)],
                evidence={"attempts": str(len(moves))},
            )


def _to_empty(timeline: Timeline, event: Event) -> Fix | None:
    """For `module.to(device)`: the module's move ends in its tensors' ones, in library code."""
    if event.site is None or event.by is None or event.op != "Tensor.to":
        return None
    call, device = timeline.call(event.site, "to"), timeline.argument(event.site, "to")
    if call is None or device is None:
        return None
    head, _, tail = call.source.rpartition(".to(")
    if tail.strip() not in (f"{device.source})", f"device={device.source})"):
        return None
    edit = Edit(call, f"{head}.to_empty(device={device.source})")
    return timeline.fix("make memory there, then fill it", Safety.DISPLAY, edit)
