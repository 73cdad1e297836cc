from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.fresh._cut_graphs import Cut, cut_words, cuts_of, frame_of, frames_of, where
from tensortrail.rules.fresh._graph_kept import kept
from tensortrail.rules.fresh._steps_mended import cleared_later, taken_anew
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import place

FROM_TENSORS = (
    "add up the tensors themselves: without the cut of line {cut}, and with their sum in place of "
    "the tensor that line {made} makes of numbers"
)


class OptimizerWithoutGradients(Rule):
    """An optimizer makes steps, and none of its parameters ever has a gradient.

    ## What it does
    In a recorded run, reports an optimizer that made at least two steps, with a backward pass
    before each of them, and had a gradient at none, because

    - `zero_grad` came between the backward pass and the step;
    - the output of its model was detached before the loss (a generator trained on the images that
      the discriminator was given);
    - its parameters are frozen;
    - no loss was computed from them.

    ## Why is this bad?
    The weights never change, and no error is raised. The loss that is printed is that of other
    weights.

    ## Example
    ```python
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
    ```
    Use instead:
    ```python
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ```

    ## Fix safety
    Unsafe: the weights are then trained.

    ## References
    - pytorch documentation, `torch.optim`: taking an optimization step
    """

    code = "NEW315"
    name = "optimizer-without-gradients"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "starved"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        facts = event.facts
        cleared, cuts = frame_of(facts.get("cleared")), list(cuts_of(facts))
        made = frame_of(facts.get("made"))
        of = ", ".join(f"`{each}`" for each in facts.get("models", ()))
        whose = f"`{facts['starved']}`" + (where(Site(made[0], made[1])) if made else "")
        told = (
            f"{whose} has made {facts['steps']} steps without a gradient"
            f"{f' for {of}' if of else ''}: {_why(timeline, event, of)}"
        )
        at, fix = event.site, None
        severity = None
        if cleared is not None:
            at, fix = Site(cleared[0], cleared[1]), cleared_later(timeline, event, cleared)
        elif facts.get("frozen"):
            stack = frames_of(facts["frozen"].get("stack"))
            at, severity = (Site(stack[0][0], stack[0][1]) if stack else at), Severity.WARNING
        elif cuts:
            at = cuts[0].at
            fix = taken_anew(timeline, event, cuts[0]) or kept(timeline, cuts[0])
            if (anew := _made_anew(timeline, event)) is not None:
                text = FROM_TENSORS.format(cut=at.line, made=anew.line)
                fix = Fix(text, Safety.DISPLAY, ())
        else:
            severity = Severity.WARNING
            fix = Fix("compute its loss from the weights that it should train", Safety.DISPLAY, ())
        event = dataclasses.replace(event, site=at)
        return self.finding_in_run(timeline, event, told, severity=severity, fixes=[fix])


def _why(timeline: Timeline, event: Event, of: str) -> str:
    cleared = frame_of(event.facts.get("cleared"))
    if cleared is not None:
        line = where(Site(cleared[0], cleared[1]))
        return f"`zero_grad`{line} takes them away between the backward pass and the step"
    if frozen := event.facts.get("frozen"):
        stack = frames_of(frozen.get("stack"))
        line = where(Site(stack[0][0], stack[0][1])) if stack else ""
        return f"all its parameters are frozen{line}"
    cuts = list(cuts_of(event.facts))
    if cuts:
        anew = _made_anew(timeline, event)
        begins = f", and the backward pass begins at a tensor made anew{place(anew)}" * bool(anew)
        return f"the graph ends with {_words(timeline, cuts[0])}{begins}"
    return "no backward pass came to its parameters"


def _made_anew(timeline: Timeline, event: Event) -> Site | None:
    """Where what the backward pass began at was made of numbers: keeping the graph of these alone
    would not help."""
    number = event.facts.get("leaf")
    storage = timeline.storage(event.process, number) if isinstance(number, int) else None
    made = timeline.history(storage, event) if storage is not None and number else ()
    return next((each.site for each in made if each.did is Did.CREATE), None)


def _words(timeline: Timeline, cut: Cut) -> str:
    return cut_words(timeline, cut).removesuffix(",")
