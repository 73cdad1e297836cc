from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.lines import by_line


class AsyncSaveTorn(Rule):
    """An asynchronous save was still going on when the next one began or the run ended.

    ## What it does
    Reports a `torch.distributed.checkpoint.async_save` that is not done at the next save or at
    the end of the program without anything having waited for it, and a next save that is staged
    into the memory the first is still written from. Found in recorded runs only.

    ## Why is this bad?
    Two saves into one directory mix their files. A stager that keeps its memory for the next
    save overwrites it: the first checkpoint gets values of both steps. A save that nobody waits
    for may fail without a word or be cut off by the end of the program: the checkpoint looks
    complete and is not.

    ## Example
    ```python
    for step in range(steps):
        train()
        dcp.async_save(state, checkpoint_id=path)
    ```
    Use instead:
    ```python
    pending = None
    for step in range(steps):
        train()
        if pending is not None:
            pending.result()
        pending = dcp.async_save(state, checkpoint_id=path)
    pending.result()
    ```

    ## Fix safety
    No fix is offered: where waiting costs least is known to the training loop only.

    ## References
    - pytorch/pytorch documentation of `torch.distributed.checkpoint.async_save`
    """

    code = "XFR602"
    name = "async-save-torn"
    since = "0.2.0"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in by_line(timeline.events(Did.PENDING)):
            torn = [each for each in events if _is_shared(each) or _is_same_path(each)]
            overtaken = [each for each in events if each.op != "exit"]
            event = (sorted(torn, key=_is_shared, reverse=True) or overtaken or events)[0]
            path = event.facts.get("path") or "a checkpoint"
            when = f"`{event.op}`" if event.op != "exit" else event.facts.get("next", "the end")
            yield self.finding_in_run(
                timeline,
                event,
                f"The asynchronous save of {path} was not done, and nobody had waited for it, "
                + _when(event, when),
                severity=Severity.ERROR if torn else Severity.WARNING,
                confidence=Confidence.HIGH if torn else Confidence.MEDIUM,
                evidence={"saves": str(len({each.facts.get("path") for each in events}))},
            )


def _when(event: Event, when: object) -> str:
    if _is_shared(event):
        return f"when {when} was staged into the memory that it is written from"
    return f"when {when} began to write there too" if _is_same_path(event) else f"at {when}"


def _is_shared(event: Event) -> bool:
    return bool(event.facts.get("shared"))


def _is_same_path(event: Event) -> bool:
    path = event.facts.get("path")
    return bool(path) and path == event.facts.get("next_path")
