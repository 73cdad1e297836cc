from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.failures import was_handled
from tensortrail.rules.shared.sentences import first_of

OTHER_CLASS = "make the class that was saved, or leave its state out and start with a new one"


class OptimizerOfOtherGroups(Rule):
    """The state of an optimizer is loaded into an optimizer of other parameters.

    ## What it does
    In a recorded run, reports an optimizer's `load_state_dict` that

    - failed because the number of groups, or of the parameters in one, differs from the saved one;
    - failed because the states are those of another class of optimizer;
    - succeeded with states of other shapes than their parameters.

    Reported as a note: a failure that the program catches.

    ## Why is this bad?
    The load raises, or, with other shapes, the first step does, far from the load. The state of an
    optimizer has no names and goes to the parameters in their order. The same number of parameters
    in another order raises nothing at all.

    ## What you may see
    ```
    ValueError: loaded state dict contains a parameter group that doesn't match the size of
    optimizer's group
    ```

    ## Example
    ```python
    optimizer = Adam(model.head.parameters())
    optimizer.load_state_dict(saved_with_all_parameters)
    ```
    Use instead:
    ```python
    optimizer = Adam(model.parameters())
    optimizer.load_state_dict(saved_with_all_parameters)
    ```

    ## Fix safety
    No fix is offered: which parameters are trained is up to the program.

    ## References
    - pytorch documentation of `torch.optim.Optimizer.load_state_dict`
    """

    code = "SHD446"
    name = "optimizer-of-other-groups"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            if "keeps" in event.facts:
                yield self._of_another_class(timeline, event)
            elif "groups there" in event.facts or "shapes" in event.facts:
                yield self._found(timeline, event)

    def _of_another_class(self, timeline: Timeline, event: Event) -> Finding:
        facts = event.facts
        made = _line(facts.get("made"))
        keeps = first_of([f"`{each}`" for each in facts["keeps"]], 3)
        return self.finding_in_run(
            timeline,
            event,
            f"`{facts['optimizer']}`" + (f", made at {made}," if made else "") + " is given the "
            f"state of another class of optimizer: it has {keeps} for each parameter, and no "
            f"`{facts['lacks']}`",
            severity=Severity.NOTE if was_handled(timeline, event) else None,
            fixes=[Fix(OTHER_CLASS, Safety.DISPLAY, ())],
        )

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        facts = event.facts
        made = _line(facts.get("made"))
        whose = f"`{facts.get('optimizer')}`" + (f", made at {made}," if made else "")
        if "shapes" in facts:
            there, here = facts["shapes"]
            why = f"the loaded state has the shape {_x(there)} for a parameter of shape {_x(here)}"
            change = "build the model as it was when this was saved, or leave the state out"
            if facts.get("reordered"):
                why += ": the saved shapes are those of its parameters in another order"
                change = "give it the parameters in the order in which they were when it was saved"
        else:
            there, here = facts["groups there"], facts["groups here"]
            why = f"has {_groups(here)}, but the loaded state has {_groups(there)}"
            change = "make it of the same parameters in the same groups, or leave the state out"
        caught = "shapes" not in facts and was_handled(timeline, event)
        return self.finding_in_run(
            timeline,
            event,
            f"{whose} {why}" if "shapes" not in facts else f"{whose} does not fit: {why}",
            severity=Severity.NOTE if caught else None,
            fixes=[Fix(change, Safety.DISPLAY, ())],
            met=[each.storage for each in _apart(timeline, event)],
        )


def _apart(timeline: Timeline, load: Event) -> Iterator[Event]:
    """The other states of this load that do not fit."""
    for each in timeline.events(Did.HOOK):
        if "does not fit" in each.facts and (each.process, each.site) == (load.process, load.site):
            yield each


def _line(row: Any) -> str:
    match row:
        case [str(file), int(line), *_] if file:
            return f"{os.path.basename(file)}:{line}"
    return ""


def _groups(sizes: Any) -> str:
    total = sum(sizes)
    if len(sizes) == 1:
        return f"1 group of {total}"
    return f"{len(sizes)} groups of {', '.join(map(str, sizes[:6]))}"


def _x(shape: Any) -> str:
    return "x".join(map(str, shape)) or "a number"
