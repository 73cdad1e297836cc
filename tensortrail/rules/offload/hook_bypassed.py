from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Setting, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules._seen import by_line, operands, was_handled

HOOK = "accelerate.AlignDevicesHook"


class HookBypassed(Rule):
    """An offloaded weight is used while its module does not run, so its hook did not bring it.

    ## What it does
    Watches the hooks that accelerate puts on offloaded modules. Speaks when an operation gets a
    weight that its hook has left on meta. Found in recorded runs only.

    ## Why is this bad?
    A hook brings the weight before the forward of the module it belongs to and takes it away
    after. Whoever uses `other.weight` directly, in another module's forward or in a helper, gets
    a placeholder without values. Some operations raise, others give undefined memory.

    ## Example
    ```python
    logits = torch.nn.functional.linear(hidden, self.embed.weight)
    ```
    Use instead:
    ```python
    with align_module_device(self.embed):
        logits = torch.nn.functional.linear(hidden, self.embed.weight)
    ```

    ## Fix safety
    No fix is offered: calling the module itself may be the better way.

    ## References
    - huggingface/accelerate documentation of `align_module_device`
    """

    code = "OFF105"
    name = "hook-bypassed"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        hooked = {
            str(event.facts.get("parameter")): event
            for event in timeline.events(Did.HOOK)
            if event.op.startswith(HOOK) and event.storage and event.storage.device == "meta"
        }
        if not hooked:
            return
        for events in by_line(timeline.events(Did.ERROR, Did.MEET)):
            for event in events:
                if by := _left(timeline, event, hooked):
                    yield self._used(timeline, event, by)
                    break

    def _used(self, timeline: Timeline, event: Event, by: Event) -> Finding:
        facts = by.facts
        name, module = facts.get("parameter"), facts.get("module")
        caught = event.did is Did.ERROR and was_handled(timeline, event)
        return self.seen(
            timeline,
            event,
            f"`{event.op}` is given `{name}`, which its hook left on meta: it is on "
            f"{facts.get('execution_device')} only while `{module}` runs",
            severity=Severity.WARNING if caught else Severity.ERROR,
            confidence=Confidence.HIGH,
            about=by.storage,
            settings=[
                Setting(
                    library="accelerate",
                    name="align_module_device",
                    value=str(module),
                    why="brings the weights of this module for as long as the block lasts",
                    where="around the line that uses the weight",
                )
            ],
            evidence={"kept in": str(facts.get("kept_in") or "memory")},
        )


def _left(timeline: Timeline, event: Event, hooked: dict[str, Event]) -> Event | None:
    """What the hook said of an operand. Its name may begin with the model's class."""
    for operand in operands(timeline, event):
        if operand.device == "meta" and operand.storage is not None:
            name = timeline.name(operand.storage)
            by = hooked.get(name) or hooked.get(name.partition(".")[2])
            if by is not None:
                return by
    return None
