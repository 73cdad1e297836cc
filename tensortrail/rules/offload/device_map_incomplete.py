from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.mends import edited, source_of
from tensortrail.rules.shared.objects import all_given
from tensortrail.rules.shared.sentences import first_of


class DeviceMapIncomplete(Rule):
    """A device map has no entry for a part of the model.

    ## What it does
    In a recorded run, reports the device map that accelerate or transformers refused, with the
    largest parts of the model that no entry covers.

    Not reported: a failure that the program catches.

    ## Why is this bad?
    The program ends. The message lists all parameters, and not the entries that are missing. Often
    the map was written for another version of the model.

    ## What you may see
    ```
    ValueError: The device_map provided does not give any device for the following parameters:
    norm.weight, norm.bias
    ```

    ## Example
    ```python
    dispatch_model(net, {"embed": "cuda:0", "body": "cuda:1"})
    ```
    Use instead:
    ```python
    dispatch_model(net, {"embed": "cuda:0", "body": "cuda:1", "norm": "cuda:1"})
    ```

    ## Fix safety
    Unsafe: the parts go to the device of the last entry, which may be too small for them.

    ## References
    - huggingface/accelerate issue 345
    """

    code = "OFF124"
    name = "device-map-incomplete"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "unmapped"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        parts = [str(each) for each in event.facts["unmapped"]]
        count = int(event.facts.get("count", len(parts)))
        names = first_of([f"`{each}`" for each in parts], 3, count)
        return self.finding_in_run(
            timeline,
            event,
            f"the device map has no entry for {names} of `{event.facts.get('model')}`",
            fixes=[_fix(timeline, event, parts)],
        )


def _fix(timeline: Timeline, event: Event, parts: list[str]) -> Fix:
    last = str(event.facts.get("last", ""))
    device = last if event.facts.get("number") else f'"{last}"'
    added = ", ".join(f'"{each}": {device}' for each in parts)
    text = f"add to the map: {added}"
    site = event.site
    given = _literal(timeline, site) if site is not None and last else None
    if given is None or site is None or len(parts) != event.facts.get("count"):
        return Fix(text, Safety.DISPLAY, ())
    return edited(timeline, text, _more(timeline, site.file, given, added))


def _more(timeline: Timeline, file: str, given: ast.Dict, added: str) -> Edit:
    value = given.values[-1]
    return timeline.replace(file, value, f"{source_of(timeline, file, value)}, {added}")


def _literal(timeline: Timeline, site: Site) -> ast.Dict | None:
    """The map that the call of that line is given: as it stands there, or in a variable that is
    assigned once."""
    tree = timeline.tree(site.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and node.lineno <= site.line <= (node.end_lineno or 0):
            for each in all_given(node):
                found = _assigned(tree, each.id) if isinstance(each, ast.Name) else each
                if isinstance(found, ast.Dict) and found.values and None not in found.keys:
                    return found
    return None


def _assigned(tree: ast.Module | None, name: str) -> ast.expr | None:
    values = [
        node.value
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]
    return values[0] if len(values) == 1 else None
