from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.failures import note_if_handled
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.sentences import first_of

SHARDED = "DTensor"


class WrapperCopiedAtLoad(Rule):
    """Quantized or sharded weights are loaded into a model whose weights are plain tensors.

    ## What it does
    In a recorded run, reports the `load_state_dict` that failed because the values are wrapper
    tensors (of torchao, `DTensor`) and the parameters of the model are not. Also the other way
    round: plain values for a model that was quantized before the load.

    Reported as a note: a failure that the program catches.

    ## Why is this bad?
    The load copies into the parameters that are there, and a plain one cannot take the parts of a
    wrapper. The message names a missing attribute.

    ## What you may see
    ```
    RuntimeError: Error(s) in loading state_dict for Sequential: While copying the parameter named
    "0.weight", ... 'Parameter' object has no attribute 'tensor_data_names'
    ```

    ## Example
    ```python
    model.load_state_dict(torch.load("int8.pt", weights_only=False))
    ```
    Use instead:
    ```python
    model.load_state_dict(torch.load("int8.pt", weights_only=False), assign=True)
    ```

    ## Fix safety
    Unsafe: the parameters are replaced, so an optimizer that was made before has the old ones.

    ## References
    - pytorch documentation of `torch.nn.Module.load_state_dict`, `assign`
    - torchao documentation "Serialization"
    """

    code = "SHD450"
    name = "wrapper-copied-at-load"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.ERROR):
            if given := _refused(event, "wrappers"):
                yield self._found(timeline, event, given)
            own = [each for each in _refused(event, "wrapped") if each[1] != SHARDED]
            if own:
                yield self._plain(timeline, event, own)

    def _plain(self, timeline: Timeline, event: Event, wrapped: list[list[str]]) -> Finding:
        names = first_of([f"`{name}`" for name, _ in wrapped], 3, len(wrapped))
        kinds = " and ".join(f"`{kind}`" for kind in dict.fromkeys(kind for _, kind in wrapped))
        are, tensors = ("is", "a plain tensor") if len(wrapped) == 1 else ("are", "plain tensors")
        return self.finding_in_run(
            timeline,
            event,
            f"{names} {are} {tensors} in the state dict, but of {kinds} in the model: the load "
            "cannot copy a plain tensor into a wrapper",
            severity=note_if_handled(timeline, event),
            fixes=[Fix("load the plain weights before they are quantized", Safety.DISPLAY, ())],
        )

    def _found(self, timeline: Timeline, event: Event, wrappers: list[list[str]]) -> Finding:
        names = first_of([f"`{name}`" for name, _ in wrappers], 3, len(wrappers))
        kinds = " and ".join(f"`{kind}`" for kind in dict.fromkeys(kind for _, kind in wrappers))
        are = "is" if len(wrappers) == 1 else "are"
        sharded = SHARDED in kinds
        return self.finding_in_run(
            timeline,
            event,
            f"{names} {are} of {kinds} in the state dict, but plain tensors in the model: the load "
            "cannot copy a wrapper into a plain tensor",
            severity=note_if_handled(timeline, event),
            fixes=[_gathered() if sharded else _assigned(timeline, event)],
        )


def _refused(event: Event, fact: str) -> list[list[str]]:
    """Names with their classes, of those that the message names."""
    said = str(event.facts.get("message", ""))
    known = [each for each in event.facts.get(fact, ()) if len(each) == 2]
    return [each for each in known if f'"{each[0]}"' in said]


def _gathered() -> Fix:
    text = "save whole tensors: `.full_tensor()` of each, or `get_model_state_dict` with "
    return Fix(f"{text}`StateDictOptions(full_state_dict=True)`", Safety.DISPLAY, ())


def _assigned(timeline: Timeline, event: Event) -> Fix:
    text = "put them in the place of the plain ones: `load_state_dict(..., assign=True)`"
    call = timeline.call(event.site, "load_state_dict") if event.site is not None else None
    if call is None or "assign" in call.source:
        return Fix(text, Safety.DISPLAY, ())
    shown = call.source.rstrip()[:-1].rstrip().removesuffix(",")
    return edited(timeline, text, Edit(call, f"{shown}, assign=True)"))
