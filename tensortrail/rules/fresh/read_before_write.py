from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Rule, Timeline
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import by_line, doer
from tensortrail.rules.shared.operands import named
from tensortrail.rules.shared.sizes import size
from tensortrail.rules.timeline import Event, Storage

_AT_THE_END = "the end of the run"


class ReadBeforeWrite(Rule):
    """Fresh memory is read before any value is written into it.

    ## What it does
    In a recorded run, reports an operation that reads or saves a tensor of `torch.empty`,
    `empty_like`, `new_empty`, `Module.to_empty`, or of a storage that was resized to get its memory
    back, before anything was written into it. It does not matter how the memory got into the
    parameter: by assignment, `.data =`, `set_`, `swap_tensors` or a copy of such memory.

    Reported as a warning: parameters and buffers of which more was read than written, and tensors
    without a name, which may be measured on purpose.

    Reported as a note: parameters and buffers that nothing has written or read by the end of the
    run.

    ## Why is this bad?
    The values are whatever was in memory: results differ from run to run, are NaN on some days and
    plausible on others. After `to_empty`, no checkpoint fills a buffer that is not persistent.

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
        unwritten = timeline.events(Did.UNWRITTEN)
        yield from self._left(timeline, [each for each in unwritten if each.op == _AT_THE_END])
        partly = [each for each in unwritten if "written" in each.facts]
        yield from self._partly(timeline, partly)
        read = [e for e in unwritten if e.op != _AT_THE_END and "written" not in e.facts]
        for events in by_line(read):
            known = [each for each in events if each.storage and timeline.is_named(each.storage)]
            event = (known or events)[0]
            if event.storage is None or (not known and event.facts.get("others")):
                continue
            storages = [each.storage for each in known or events if each.storage]
            made = _since(timeline, event.storage, event)
            unsaved = event.facts.get("unsaved")
            why = ": as a buffer with `persistent=False`, it is in no state dict" if unsaved else ""
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` reads {named(timeline, storages)}, which nothing has written to "
                f"since {doer(made) if made else 'it was made'}{why}",
                fixes=[_computed_again(str(unsaved))] if unsaved else [],
                severity=Severity.ERROR if known else Severity.WARNING,
                confidence=Confidence.HIGH if known else Confidence.MEDIUM,
                evidence={"reads": str(len(events))},
            )

    def _partly(self, timeline: Timeline, events: list[Event]) -> Iterator[Finding]:
        """Only a part was written, and more is read."""
        for same in by_line(events):
            event = same[0]
            storages = [s for e in same if (s := e.storage) and timeline.is_named(s)]
            if event.storage is None or not storages:
                continue
            made = _since(timeline, event.storage, event)
            written, read = (int(event.facts[key]) for key in ("written", "read"))
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` reads {named(timeline, storages)}: {size(read)}, of which "
                f"at most {size(written)} were written since "
                f"{doer(made) if made else 'it was made'}",
                severity=Severity.WARNING,
            )

    def _left(self, timeline: Timeline, events: list[Event]) -> Iterator[Finding]:
        """Nobody read it so far."""
        made = [(_since(timeline, e.storage, e), e.storage) for e in events if e.storage]
        for same in by_line([each for each, _ in made if each is not None]):
            storages = [storage for each, storage in made if each in same]
            yield self.finding_in_run(
                timeline,
                same[0],
                f"{named(timeline, storages)}: no load, copy or operation has written into this "
                f"memory since {doer(same[0])}, and nothing has read it by the end of the run",
                severity=Severity.NOTE,
                about=storages[0],
            )


def _computed_again(owner: str) -> Fix:
    text = f"compute it again after `to_empty`, as the constructor of `{owner}` does"
    return Fix(text, Safety.DISPLAY, ())


def _since(timeline: Timeline, storage: Storage, until: Event) -> Event | None:
    """What gave the storage its memory."""
    gave = (Did.CREATE, Did.RESIZE, Did.MOVE, Did.COPY)
    own = [e for e in timeline.history(storage, until) if e.storage == storage and e.did in gave]
    return own[-1] if own else put_there(timeline, storage, until)
