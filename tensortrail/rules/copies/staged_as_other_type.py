from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Setting, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.calls import carrier
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.operands import named
from tensortrail.rules.shared.sizes import size

_PLAIN = frozenset({
    "torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer",
})  # fmt: skip


class StagedAsOtherType(Rule):
    """An asynchronous save staged a tensor as another type, and its values are lost.

    ## What it does
    In a recorded run, reports a wrapper subclass that `async_save` was given and whose staged copy
    is of another class.

    ## Why is this bad?
    The checkpoint holds uninitialised memory, and no error is raised. Staging makes its copy by
    `new_empty` and fills it storage by storage; if the subclass answers `new_empty` with a plain
    tensor, nothing is written into the copy.

    ## Example
    ```python
    dcp.async_save({"weight": float8_weight}, checkpoint_id=path)
    ```
    Use instead:
    ```python
    dcp.save({"weight": float8_weight}, checkpoint_id=path)
    ```

    ## Fix safety
    No fix is offered: the subclass has to answer `aten.new_empty` with its own type.

    ## References
    - pytorch/ao, `WeightWithDynamicFloat8CastTensor` and its answer to `aten.new_empty`
    - NVIDIA/TransformerEngine pull request 2721
    """

    code = "XFR604"
    name = "staged-as-other-type"
    since = "0.2.0"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        changed = [
            each
            for each in timeline.events(Did.STAGE)
            if _changed(each) and not _was_given_values(timeline, each)
        ]
        for events in by_line(changed):
            event = events[0]
            sources = {str(each.facts.get("key")): each.other for each in events if each.other}
            kind, staged = (str(event.facts[key]).rpartition(".")[2] for key in ("type", "staged"))
            yield self.finding_in_run(
                timeline,
                event,
                f"{named(timeline, sources.values())}, of type `{kind}`, "
                f"{'is' if len(sources) == 1 else 'are'} staged as `{staged}`: "
                "the checkpoint gets memory without their values",
                settings=_kept(timeline, event),
                evidence={"tensors": str(len(sources)), "stagings": str(len(events))},
            )


def _kept(timeline: Timeline, event: Event) -> Iterator[Setting]:
    """A stager that asks the subclass for its values, and not for an empty one of its kind."""
    together = [each.other for each in timeline.events(Did.STAGE) if each.site == event.site]
    held = sum({each.key: each.nbytes for each in together if each}.values())
    yield Setting(
        library="torch",
        name="async_stager",
        value="BlockingAsyncStager()",
        why=f"copies the values ({size(held)}) to the CPU before `async_save` returns",
        where="torch.distributed.checkpoint.async_save",
        call="async_save",
        at=carrier(timeline, event.site, "async_save"),
        imports="from torch.distributed.checkpoint.staging import BlockingAsyncStager",
    )


def _changed(event: Event) -> bool:
    kind, staged = event.facts.get("type"), event.facts.get("staged")
    return bool(kind and staged) and kind not in _PLAIN and kind != staged


def _was_given_values(timeline: Timeline, staged: Event) -> bool:
    """Some stagers write the values into a plain tensor: nothing is lost by that."""
    history = timeline.history(staged.storage, staged) if staged.storage else ()
    return any(each.did is Did.COPY and each.storage == staged.storage for each in history)
