from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.mends import edited, line_behind, statement_of

OP = "dcp.load"


class LoadedIntoCopies(Rule):
    """A distributed checkpoint is loaded into copies of the weights, which are never used.

    ## What it does
    In a recorded run, reports a `torch.distributed.checkpoint.load` into tensors that are not the
    model's own, though a model has a weight for each of their keys, if nothing reads these tensors
    until the end: no `load_state_dict`, no copy, no comparison, no save.

    ## Why is this bad?
    The model keeps its initial weights, and no error is raised: a run that should resume starts
    anew. The load writes only into the tensors that it is given.

    ## Example
    ```python
    state = {key: value.clone() for key, value in model.state_dict().items()}
    dcp.load(state, checkpoint_id=folder)
    ```
    Use instead:
    ```python
    state = {key: value.clone() for key, value in model.state_dict().items()}
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state)
    ```

    ## Fix safety
    Unsafe: the model then has other weights.

    ## References
    - pytorch documentation, `torch.distributed.checkpoint`: "load operates in place"
    """

    code = "SHD442"
    name = "loaded-into-copies"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            if "unread" in event.facts:
                yield self._found(timeline, event, str(event.facts["unread"]))

    def _found(self, timeline: Timeline, event: Event, model: str) -> Finding:
        count, path = event.facts.get("count"), os.path.basename(str(event.facts.get("path")))
        of = f" of {path}" if path else ""
        return self.finding_in_run(
            timeline,
            event,
            f"the {count} tensors that `{event.op}` filled with the values{of} are not those of "
            f"`{model}`, and nothing has read them: `{model}` has none of these values",
            fixes=[_given_to(timeline, event.site, model)],
        )


def _given_to(timeline: Timeline, site: Site | None, model: str) -> Fix:
    text = f"give them to the model behind the load: `{model}.load_state_dict(...)`"
    statement = statement_of(timeline, site)
    given = _given(statement) if statement else ""
    if site is None or statement is None or not given or not model.isidentifier():
        return Fix(text, Safety.DISPLAY, ())
    line = f"{model}.load_state_dict({given})"
    told = f"give them to the model behind the load: `{line}`"
    edit = line_behind(timeline, site.file, statement, line)
    return edited(timeline, told, edit)


def _given(statement: ast.stmt) -> str:
    """The variable, or the part of a dict under the only key, that is loaded into."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and node.args:
            match node.args[0]:
                case ast.Name(id=name):
                    return name
                case ast.Dict(values=[ast.Name(id=name)]):
                    return name
    return ""
