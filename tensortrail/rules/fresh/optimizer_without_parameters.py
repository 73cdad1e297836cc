from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.fresh._cut_graphs import frames_of
from tensortrail.rules.shared.failures import note_if_handled
from tensortrail.rules.shared.hidden_layers import container_registered
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import place


class OptimizerWithoutParameters(Rule):
    """An optimizer is made of the parameters of a model that has none to give.

    ## What it does
    In a recorded run, reports an optimizer that refused an empty list, and names the model

    - whose layers are in a plain list or dict, with the line that assigns it;
    - all of whose weights were frozen, with the line that did it.

    It also says so if the optimizer was given an iterator, such as `filter(...)` over
    `model.parameters()`, that something else had gone through before.

    Reported as a note: a failure that the program catches.

    ## Why is this bad?
    The program ends, and its message names no model. With one registered layer beside the list it
    would go on, and never train the others.

    ## What you may see
    ```
    ValueError: optimizer got an empty parameter list
    ```

    ## Example
    ```python
    self.layers = [nn.Linear(8, 8) for _ in range(depth)]
    ```
    Use instead:
    ```python
    self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(depth)])
    ```

    ## Fix safety
    Unsafe: checkpoints that were written before lack the weights.

    ## References
    - pytorch documentation of `torch.nn.ModuleList`
    """

    code = "NEW319"
    name = "optimizer-without-parameters"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "no parameters"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        why, fix = _why(timeline, event)
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.facts['no parameters']}` gets no parameters{why}",
            severity=note_if_handled(timeline, event),
            fixes=[fix],
        )


def _why(timeline: Timeline, event: Event) -> tuple[str, Fix | None]:
    if spent := event.facts.get("spent"):
        text = "keep the parameters in a list, which can be gone through again: `list(...)`"
        told = f": it is given a `{spent}` that was gone through before, so nothing is left in it"
        return told, Fix(text, Safety.DISPLAY, ())
    empty, frozen = _rows(event, "empty"), _rows(event, "frozen")
    hides = next((each for each in empty if each.get("holder")), None)
    if hides is not None:
        return _hidden(timeline, hides)
    if frozen:
        at = frames_of(frozen[0].get("stack"))
        line = place(Site(at[0][0], at[0][1])) if at else ""
        text = "let what is to be trained have gradients before the optimizer is made"
        of = f"`{frozen[0].get('model')}` ({frozen[0].get('kind')})"
        told = f": all {frozen[0].get('count')} of {of} are frozen{line}"
        return told, Fix(text, Safety.DISPLAY, ())
    if empty:
        return f": `{empty[0].get('model')}` ({empty[0].get('kind')}) has none", None
    return "", None


def _hidden(timeline: Timeline, model: Mapping[str, Any]) -> tuple[str, Fix]:
    line: Site | None = None
    match model.get("assigned"):
        case [str(file), int(number)]:
            line = Site(file, number)
    holder, count = str(model["holder"]), model.get("count")
    layers = "1 layer" if count == 1 else f"{count} layers"
    told = (
        f": `{model.get('model')}` ({model.get('kind')}) has its {layers} in `{holder}`, a plain "
        f"container{place(line)}, in which `nn.Module` does not look"
    )
    return told, container_registered(timeline, line, holder)


def _rows(event: Event, name: str) -> list[Mapping[str, Any]]:
    return [each for each in event.facts.get(name, ()) if isinstance(each, Mapping)]
