from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.sentences import first_of

FLAG = "inplace"


class HookedOutputChanged(Rule):
    """The output of a module with a full backward hook is changed in place.

    ## What it does
    In a recorded run, reports the operation that autograd refused, with the modules that have the
    hook and the module that changes the output: often `nn.ReLU(inplace=True)` behind a layer that a
    heat map or a privacy library hooks.

    Not reported: a failure that the program catches.

    ## Why is this bad?
    The program ends, and its message names a custom function that the program does not have: it
    is torch's own, which calls the hook.

    ## What you may see
    ```
    RuntimeError: Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace.
    ```

    ## Example
    ```python
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True))
    model[0].register_full_backward_hook(keep)
    ```
    Use instead:
    ```python
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=False))
    model[0].register_full_backward_hook(keep)
    ```

    ## Fix safety
    Unsafe: the activation needs memory of its own.

    ## References
    - pytorch documentation of `torch.nn.Module.register_full_backward_hook`
    """

    code = "STO223"
    name = "hooked-output-changed"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "hooked"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        facts = event.facts
        hooked = [f"`{facts.get('model')}.{each}`".rstrip(".") for each in facts["hooked"]]
        whose = first_of(hooked, 3, len(hooked)) or "a module"
        have = "has" if len(hooked) == 1 else "have"
        changes = f"{facts.get('model')}.{facts.get('changes')}".rstrip(".")
        return self.finding_in_run(
            timeline,
            event,
            f"`{changes}` ({facts.get('kind')}) changes in place what a hooked module gave: "
            f"{whose} {have} a full backward hook, and autograd must find that output as it was",
            fixes=[_fix(timeline, event, changes)],
        )


def _fix(timeline: Timeline, event: Event, changes: str) -> Fix:
    if not event.facts.get("flag"):
        text = f"make a new tensor in `{changes}`, or hook another module"
        return Fix(text, Safety.DISPLAY, ())
    text = f"let it make a new tensor: `{FLAG}=False`"
    return edited(timeline, text, _switched_off(timeline, event))


def _switched_off(timeline: Timeline, event: Event) -> Edit | None:
    """The only `inplace=True` of such a module in the file."""
    tree = timeline.tree(event.site.file) if event.site is not None else None
    kind = str(event.facts.get("kind"))
    found = [
        given.value
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == kind
        for given in node.keywords
        if given.arg == FLAG
    ]
    if event.site is None or len(found) != 1:
        return None
    return timeline.replace(event.site.file, found[0], "False")
