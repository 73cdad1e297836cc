from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Event, Rule, Storage, Timeline
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.parallel_wrappers import AVERAGING
from tensortrail.rules.shared.sentences import first_of

SETTING = "find_unused_parameters"


class UnusedInParallel(Rule):
    """`DistributedDataParallel` waits for gradients of parameters that the loss does not use.

    ## What it does
    In a recorded run, reports the failure of `DistributedDataParallel` in the next iteration, with
    the names of the parameters that had no gradient. The exception has only their numbers.
    Parameters that were replaced in the model after it was wrapped are reported as such.

    ## Why is this bad?
    The program ends in the next iteration, or the ranks wait for each other: each gradient is
    averaged over the ranks as soon as it is there, and these never come.

    ## What you may see
    ```
    RuntimeError: Expected to have finished reduction in the prior iteration before starting a new
    one. Parameter indices which did not receive grad for rank 0: 4 5
    ```

    ## Example
    ```python
    model = DistributedDataParallel(net)
    ```
    Use instead:
    ```python
    model = DistributedDataParallel(net, find_unused_parameters=True)
    ```

    ## Fix safety
    Unsafe: each iteration walks the graph once more. Freeze parameters that are never used.

    ## References
    - pytorch documentation of `DistributedDataParallel`, `find_unused_parameters`
    """

    code = "NEW317"
    name = "unused-in-parallel"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            if not (known := event.facts.get("without gradients")):
                continue
            count = int(event.facts.get("count", len(known)))
            names = first_of([f"`{each}`" for each in known], 3, count)
            if put_in := event.facts.get("put in"):
                weights = [timeline.storage(event.process, each) for each in put_in]
                yield self._replaced(timeline, event, names, [each for each in weights if each])
            else:
                yield self._unused(timeline, event, names)

    def _unused(self, timeline: Timeline, event: Event, names: str) -> Finding:
        return self.finding_in_run(
            timeline,
            event,
            f"the loss of the previous iteration did not use {names}: "
            "`DistributedDataParallel` waits for their gradients",
            fixes=[_told(timeline, event)],
        )

    def _replaced(
        self, timeline: Timeline, event: Event, names: str, weights: list[Storage]
    ) -> Finding:
        """To search for unused ones would only hide that the new ones differ on each rank."""
        made = [timeline.history(each)[:1] for each in weights]
        line = next((f", made{where(each[0])}" for each in made if each), "")
        return self.finding_in_run(
            timeline,
            event,
            f"`DistributedDataParallel` waits for the gradients of {names} that it was made with: "
            f"the model has others in their place{line}",
            about=next(iter(weights), None),
            fixes=[Fix("wrap the model when it is complete", Safety.DISPLAY, ())],
        )


def _told(timeline: Timeline, event: Event) -> Fix:
    text = f"`{SETTING}=True`, or freeze what is never used"
    tree = timeline.tree(event.site.file) if event.site else None
    names = set(_names(tree)) if tree else set()
    made = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in names
    ]
    if event.site is None or len(made) != 1 or SETTING in map(_keyword, made[0].keywords):
        return Fix(text, Safety.DISPLAY, ())
    last = [*made[0].args, *(each.value for each in made[0].keywords)][-1]
    edit = timeline.replace(event.site.file, last, f"{ast.unparse(last)}, {SETTING}=True")
    return edited(timeline, text, edit)


def _names(tree: ast.Module) -> Iterator[str]:
    """What the file calls the wrapper."""
    yield AVERAGING[0]
    yield AVERAGING[0].replace("torch.", "", 1)
    yield "parallel.DistributedDataParallel"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch.nn.parallel"):
            for alias in node.names:
                if alias.name == "DistributedDataParallel":
                    yield alias.asname or alias.name


def _keyword(node: ast.keyword) -> str:
    return node.arg or ""
