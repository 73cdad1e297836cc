from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Rule, Timeline
from tensortrail.rules.fresh._other_names import changes, renamed, twice
from tensortrail.rules.shared.lines import doer
from tensortrail.rules.shared.loads import file_of, is_of_another_class
from tensortrail.rules.shared.operands import named
from tensortrail.rules.timeline import Event

_AT_THE_END = "the end of the run"


class WeightNotLoaded(Rule):
    """A load leaves out a weight, and the model uses its initial values.

    ## What it does
    In a recorded run, reports loads that left out weights: `load_state_dict(strict=False)`,
    `from_pretrained`, `load_model` of safetensors, `load_checkpoint_in_model` of accelerate and
    partial loads of distributed checkpoints. The finding names the weights, the file and the first
    operation that reads them:

    - an error if hardly anything in the file fits: it is the checkpoint of another class;
    - a warning if the rest fits, and nothing trains or writes these weights.

    Reported as a note: weights that nothing reads, and a file that fits wholly but has only a small
    part of the weights, such as an adapter.

    Not reported: weights with values from another load or a copy, new heads that an optimizer
    trains, tied weights, and buffers that are computed.

    ## Why is this bad?
    Answers differ after each start and look plausible, because the weights are random numbers. The
    library prints the missing keys once, among other lines, and goes on.

    ## Example
    ```python
    model.load_state_dict(torch.load("backbone.pt"), strict=False)  # has no `head.weight`
    model.eval()
    model(batch)
    ```
    Use instead:
    ```python
    missing, unexpected = model.load_state_dict(torch.load("backbone.pt"), strict=False)
    assert all(name.startswith("head.") for name in missing) and not unexpected
    train(model.head)
    ```

    ## Fix safety
    No fix is offered: only you know where the weights should come from.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.load_state_dict`, `strict`
    - huggingface/transformers documentation of `from_pretrained`, `output_loading_info`
    """

    code = "NEW311"
    name = "weight-not-loaded"
    since = "0.2.0"
    severity = Severity.WARNING

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        told = timeline.events(Did.HOOK)
        trained = {(e.storage, e.facts["trained"]) for e in told if "trained" in e.facts}
        for load in (each for each in told if "load" in each.facts):
            here = [e for e in told if e.process == load.process]
            left = [e for e in here if e.facts.get("initial") == load.facts["load"]]
            if _is_of_an_adapter(load):
                left = [each for each in left if _belongs_to_it(timeline, each, load)]
            used = [e for e in left if e.op != _AT_THE_END]
            other = is_of_another_class(load)
            kept = [e for e in used if other or (e.storage, load.facts["load"]) not in trained]
            if kept or (left and not used):
                yield self._found(timeline, load, kept or left, other)

    def _found(self, timeline: Timeline, load: Event, left: list[Event], other: bool) -> Finding:
        names = named(timeline, [each.storage for each in left if each.storage])
        first = left[0]
        file = file_of(load)
        read = f"{doer(first)} reads the initial values"
        if first.op == _AT_THE_END:
            read = "nothing has read or replaced the initial values"
        named_otherwise = renamed(load)
        lacks = f"{file} has no values for {names}{named_otherwise}: {read}"
        if other:
            weights, missing = (int(load.facts[key]) for key in ("weights", "missing"))
            why = _prefixed(load) or twice(load) or "it is the checkpoint of another class"
            lacks = (
                f"{file} fits {weights - missing} of {weights} weights of "
                f"{load.facts.get('model')}, and {load.facts['unused_count']} of its keys fit "
                f"none: {why}, and {read}"
            )
        note = first.op == _AT_THE_END or _is_a_part(load)
        return self.finding_in_run(
            timeline,
            load,
            lacks,
            severity=Severity.ERROR if other else Severity.NOTE if note else Severity.WARNING,
            confidence=Confidence.HIGH if other else Confidence.MEDIUM,
            fixes=[*changes(load), *_unprefixed(load, other)],
            met=[each.storage for each in left],
            evidence={"weights": str(len(left))},
        )


def _prefixed(load: Event) -> str:
    """Keys of the file that have something before the names of the weights."""
    unused, left = (list(map(str, load.facts.get(key, ()))) for key in ("unused", "left"))
    firsts = {each.split(".")[0] for each in unused}
    roots = {each.split(".")[0] for each in left}
    seconds = {each.partition(".")[2].split(".")[0] for each in unused}
    if len(firsts) != 1 or firsts & roots or not roots.issuperset(seconds):
        return ""
    return f"its keys begin with `{firsts.pop()}.`, which those of the model do not"


def _unprefixed(load: Event, other: bool) -> Iterator[Fix]:
    if other and _prefixed(load):
        told = "save the state dict of the model itself, not that of what holds it; or take the "
        yield Fix(f"{told}prefix off the keys before the load", Safety.DISPLAY, ())


def _is_a_part(load: Event) -> bool:
    """A small one that fits wholly: an adapter, one of several files."""
    weights, missing = (load.facts.get(key, 0) for key in ("weights", "missing"))
    fits = not load.facts.get("unused_count")
    return _is_of_an_adapter(load) or (fits and missing > weights / 2)


def _is_of_an_adapter(load: Event) -> bool:
    """All of it fits, and peft loads it: the weights of the model are none of its business."""
    by_peft = load.by is not None and "/peft/" in load.by.file.replace("\\", "/")
    return by_peft and not load.facts.get("unused_count")


def _belongs_to_it(timeline: Timeline, left: Event, load: Event) -> bool:
    """The weight is one of the same adapter as those that the file has."""
    path = timeline.name(left.storage).split(".") if left.storage else []
    return {*load.facts.get("all given", ())} <= {*path}
