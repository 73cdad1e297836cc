from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.hook_events import hooks_telling


class BranchOnData(Rule):
    """A function that is exported or compiled whole reads the value of a tensor to choose a branch.

    ## What it does
    In a recorded run, reports the `if`, `while`, `assert` or conditional expression at which
    `torch.export` or `torch.compile(fullgraph=True)` gave up.

    Not reported: a failure that the program catches.

    ## Why is this bad?
    The program ends with a long message about expressions and guards. A graph is made without the
    values of its inputs, so it cannot know which branch is taken.

    ## What you may see
    ```
    torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode: Could not guard on
    data-dependent expression Eq(u0, 1)
    torch._dynamo.exc.UserError: Dynamic control flow is not supported at the moment
    ```

    ## Example
    ```python
    if x.abs().max() > 1:
        x = x / x.abs().max()
    ```
    Use instead:
    ```python
    x = torch.where(x.abs().max() > 1, x / x.abs().max(), x)
    ```

    ## Fix safety
    No fix is offered: both branches of `torch.where` are computed, and those of `torch.cond` must
    give tensors of one shape.

    ## References
    - pytorch documentation of `torch.cond`
    - pytorch/tutorials pull request 3244
    """

    code = "XFR612"
    name = "branch-on-data"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "branch"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        at = _at(event)
        inside = f", in {at.function}," if at is not None and at.function else ""
        line = f" of line {at.line}{inside}" if at is not None else ""
        kind = _KINDS[str(event.facts["branch"])]
        return self.finding_in_run(
            timeline,
            dataclasses.replace(event, site=at) if at is not None else event,
            f"the {kind}{line} depends on data, `{event.facts.get('asks')}`, and a graph is "
            "captured without values",
            fixes=[Fix(_change(str(event.facts["branch"])), Safety.DISPLAY, ())],
        )


_KINDS = {"If": "`if`", "While": "`while`", "IfExp": "`... if ... else`", "Assert": "`assert`"}


def _change(kind: str) -> str:
    if kind == "Assert":
        return "use `torch._assert_async`, or check before the call"
    if kind == "While":
        return "use a number of rounds that is known before, or run this part outside of the graph"
    return "choose between values with `torch.where`, or between functions with `torch.cond`"


def _at(event: Event) -> Site | None:
    match event.facts.get("branch at"):
        case [str(file), int(line), str(function)] if file:
            return Site(file, line, function=function)
    return None
