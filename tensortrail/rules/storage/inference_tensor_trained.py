from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.failures import errors, weight
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.shared.operands import called, operands

REFUSED = re.compile(
    r"Inference tensors cannot be saved for backward|[Ii]nplace update to inference tensor"
)
IN_PLACE = "nplace update"
MODE, PLAIN = "inference_mode", "no_grad"


class InferenceTensorTrained(Rule):
    """A tensor that was made in inference mode is used where gradients are computed.

    ## What it does
    In a recorded run, reports an operation that refused such a tensor, with its name and the lines
    of the file that switch inference mode on.

    Reported as a note: a failure that the program catches.

    ## Why is this bad?
    The program ends. Tensors of inference mode do not count their changes, so autograd refuses them
    as long as they live. Tensors made under `no_grad` have no gradients either and can be used
    later.

    ## What you may see
    ```
    RuntimeError: Inference tensors cannot be saved for backward.
    ```

    ## Example
    ```python
    with torch.inference_mode():
        features = backbone(x)
    head(features).sum().backward()
    ```
    Use instead:
    ```python
    with torch.no_grad():
        features = backbone(x)
    head(features).sum().backward()
    ```

    ## Fix safety
    Unsafe: the block takes a little more time.

    ## References
    - pytorch documentation "Autograd mechanics", inference mode
    """

    code = "STO219"
    name = "inference-tensor-trained"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, REFUSED):
            yield self._found(timeline, events)

    def _found(self, timeline: Timeline, events: list[Event]) -> Finding:
        event = events[0]
        severity, confidence = weight(timeline, events)
        given = operands(timeline, event)
        if IN_PLACE not in str(event.facts.get("message", "")):
            given = [each for each in given if not each.has_gradient]
        of = called(timeline, given[0]) if given else "a tensor"
        site = event.site
        modes = list(_modes(timeline, site.file)) if site else []
        lines = ", ".join(f"{os.path.basename(site.file)}:{each.lineno}" for each in modes if site)
        made = f" at {lines}" if lines else ""
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}` computes gradients and is given {of}, made in inference mode{made}",
            severity=severity,
            confidence=confidence,
            fixes=[_plain(timeline, site, modes)],
        )


def _modes(timeline: Timeline, file: str) -> Iterator[ast.Call]:
    """`torch.inference_mode()` of blocks and decorators."""
    tree = timeline.tree(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and last_name(node.func) == MODE:
            yield node


def _plain(timeline: Timeline, site: Site | None, modes: list[ast.Call]) -> Fix:
    text = "switch gradients off with `torch.no_grad()` instead"
    edits: list[Edit] = []
    for each in modes:
        if site and isinstance(each.func, ast.Attribute) and not each.args and not each.keywords:
            owner = ast.unparse(each.func.value)
            edits.append(timeline.replace(site.file, each.func, f"{owner}.{PLAIN}"))
    return edited(timeline, text, edits[0] if len(edits) == 1 else None)
