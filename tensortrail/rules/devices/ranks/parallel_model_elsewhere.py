from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.failures import note_if_handled
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.mends import edited, source_of
from tensortrail.rules.shared.sentences import first_of

WRAPPER = "DataParallel"


class ParallelModelElsewhere(Rule):
    """`DataParallel` is given a model that is not on its first GPU.

    ## What it does
    In a recorded run, reports the call that `DataParallel` refused, and says which weights are
    elsewhere: all of them on the CPU, a layer that was put in later, or a model that is spread over
    several GPUs.

    Reported as a note: a failure that the program catches.

    ## Why is this bad?
    The first batch fails. `DataParallel` copies the model from its first GPU to the others, and
    moves inputs, but never the model itself.

    ## What you may see
    ```
    RuntimeError: module must have its parameters and buffers on device cuda:0 (device_ids[0]) but
    found one of them on device: cpu
    ```

    ## Example
    ```python
    model = nn.DataParallel(net)
    model(x.cuda())
    ```
    Use instead:
    ```python
    model = nn.DataParallel(net.to("cuda:0"))
    model(x.cuda())
    ```

    ## Fix safety
    Unsafe: the model needs memory on that GPU.

    ## References
    - pytorch documentation of `torch.nn.DataParallel`
    """

    code = "DEV625"
    name = "parallel-model-elsewhere"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "parallel on"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        facts = event.facts
        first, devices = str(facts["parallel on"]), [str(each) for each in facts["devices"]]
        names = [str(each) for each in facts["others"]]
        count = int(facts.get("count", len(names)))
        listed = first_of([f"`{each}`" for each in names], 3, count)
        whole = f"the whole `{facts.get('model')}`" if facts.get("all") else listed
        numbers = facts.get("weights", ())
        return self.finding_in_run(
            timeline,
            event,
            f"`{WRAPPER}` copies the model from {first}, and {whole} "
            f"{'is' if facts.get('all') or count == 1 else 'are'} on {' and '.join(devices)}",
            about=timeline.storage(event.process, numbers[0]) if numbers else None,
            severity=note_if_handled(timeline, event),
            fixes=[_fix(timeline, event, first, devices)],
        )


def _fix(timeline: Timeline, event: Event, first: str, devices: list[str]) -> Fix:
    if [each for each in devices if each != "cpu"]:
        text = f"a model on several GPUs needs no `{WRAPPER}`: call it without"
        return Fix(text, Safety.DISPLAY, ())
    text = f"move it before it is wrapped: `.to({first!r})`"
    return edited(timeline, text, _moved(timeline, event.site, first))


def _moved(timeline: Timeline, site: Site | None, first: str) -> Edit | None:
    """Of what the only `DataParallel(...)` of the file is given."""
    tree = timeline.tree(site.file) if site is not None else None
    made = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call) and node.args and _name(node.func) == WRAPPER
    ]
    if site is None or len(made) != 1:
        return None
    given = made[0].args[0]
    source = source_of(timeline, site.file, given)
    simple = isinstance(given, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    shown = source if simple else f"({source})"
    return timeline.replace(site.file, given, f'{shown}.to("{first}")')


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
