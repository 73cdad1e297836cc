from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules import Did, Rule, Timeline
from tensortrail.rules.timeline import Event


class AssignReplaces(Rule):
    """`load_state_dict(assign=True)` changes the device or the type of weights.

    ## What it does
    In a recorded run, reports a load with `assign=True` after which weights are on another device
    than before, some have another type than the rest, or quantized and other wrapper tensors are
    plain ones.

    Reported as a note: all weights have one other type.

    Not reported: weights that were on meta, for which `assign=True` is made.

    ## Why is this bad?
    After the load the model is back on the CPU, computes partly in another type, or needs twice the
    memory, and one that was quantized before is quantized no more: the tensors of the file replace
    those of the model, with their device and type. Without `assign=True`, values are copied, and an
    earlier `model.cuda()` or `model.half()` stays in effect.

    ## Example
    ```python
    model = Model().cuda()
    model.load_state_dict(torch.load("model.pt", map_location="cpu"), assign=True)
    ```
    Use instead:
    ```python
    model = Model().cuda()
    model.load_state_dict(torch.load("model.pt", map_location="cpu"))
    ```

    ## Fix safety
    No fix is offered: either the argument or the order of the calls may be meant.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.load_state_dict`, `assign`
    """

    code = "SHD418"
    name = "assign-replaces"
    since = "0.2.0"
    severity = Severity.WARNING

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for load in timeline.events(Did.HOOK):
            if "retyped" not in load.facts:
                continue
            moved, retyped, unwrapped = (
                load.facts.get(how) or {} for how in ("moved", "retyped", "unwrapped")
            )
            message = _message(load, {**moved, **retyped, **unwrapped})
            if message:
                harmful = moved or unwrapped or _is_mixed(load)
                severity = Severity.WARNING if harmful else Severity.NOTE
                yield self.finding_in_run(timeline, load, message, severity=severity)


def _message(load: Event, changes: Mapping[str, int]) -> str:
    told = [f"{counted(count, 'weight')} {change}" for change, count in changes.items()]
    now = load.facts.get("now") or {}
    mixed = " and ".join(f"{count} in {kind}" for kind, count in sorted(now.items()))
    after = f"; the model has {mixed} now" if len(now) > 1 else ""
    return f"`assign=True` replaced {', '.join(told)}{after}" if told else ""


def _is_mixed(load: Event) -> bool:
    """Only a part of the floating point weights has changed its type."""
    now = load.facts.get("now") or {}
    return len({kind.partition(" ")[2] for kind in now if "float" in kind}) > 1
