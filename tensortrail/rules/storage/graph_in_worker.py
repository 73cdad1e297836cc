from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.flows import function_at
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import place
from tensortrail.rules.shared.mends import edited


class GraphInWorker(Rule):
    """A data set runs a model in a worker and gives results that belong to a graph.

    ## What it does
    In a recorded run, reports the batch that a worker of a `DataLoader` could not make, with the
    function of the data set that gave the tensors.

    Not reported: a failure that the program catches.

    ## Why is this bad?
    The program ends. A worker puts a batch into shared memory, and a graph cannot go to another
    process. Without workers the same code runs, and each batch keeps a graph that is not needed.

    ## What you may see
    ```
    RuntimeError: stack(): functions with out=... arguments don't support automatic differentiation,
    but one of the arguments requires grad.
    ```

    ## Example
    ```python
    def __getitem__(self, i):
        return self.embed(self.tokens[i])
    ```
    Use instead:
    ```python
    @torch.no_grad()
    def __getitem__(self, i):
        return self.embed(self.tokens[i])
    ```

    ## Fix safety
    Unsafe: the model in the data set gets no gradients. In a worker it would get none anyway.

    ## References
    - pytorch documentation of `torch.utils.data`, "Multi-process data loading"
    """

    code = "STO224"
    name = "graph-in-worker"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "graph from worker"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        gives = _gives(event)
        name = gives.function if gives is not None else str(event.facts["graph from worker"])
        return self.finding_in_run(
            timeline,
            event,
            f"a worker cannot make the batch: `{name}`{place(gives)} gives tensors that belong to "
            "a graph, and a graph cannot go to another process",
            fixes=[_without(timeline, gives)],
        )


def _gives(event: Event) -> Site | None:
    match event.facts.get("gives"):
        case [str(file), int(line), str(function)]:
            return Site(file, line, function=function)
    return None


def _without(timeline: Timeline, gives: Site | None) -> Fix:
    text = "run it without gradients, `@torch.no_grad()`, or run the model on the batch"
    tree = timeline.tree(gives.file) if gives is not None else None
    function = function_at(tree, gives.line) if tree is not None and gives is not None else None
    if gives is None or not isinstance(function, ast.FunctionDef) or not _knows_torch(tree):
        return Fix(text, Safety.DISPLAY, ())
    line = f"{' ' * function.col_offset}@torch.no_grad()\n"
    return edited(timeline, text, timeline.insert(gives.file, gives.line, line))


def _knows_torch(tree: ast.Module | None) -> bool:
    return any(
        alias.name == "torch" and alias.asname is None
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Import)
        for alias in node.names
    )
