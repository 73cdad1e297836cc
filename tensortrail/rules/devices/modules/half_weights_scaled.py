from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Storage, Timeline
from tensortrail.rules.shared.converted import converted_by
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import place
from tensortrail.rules.shared.operands import named

CHANGE = (
    "keep what is trained in float32, and let autocast compute in half: "
    "`for p in model.parameters(): p.data = p.data.float()` for those that are trained"
)


class HalfWeightsScaled(Rule):
    """A gradient scaler is used with weights in float16.

    ## What it does
    In a recorded run, reports a `GradScaler` that refused the gradients of float16 weights, with
    the name of a weight and the line that made them float16.

    ## Why is this bad?
    The program ends. A scaler needs float32 weights; autocast runs their operations in half
    precision. In float16 weights, small updates are lost.

    ## What you may see
    ```
    ValueError: Attempting to unscale FP16 gradients.
    ```

    ## Example
    ```python
    model = Net().half()
    scaler = torch.amp.GradScaler("cuda")
    ```
    Use instead:
    ```python
    model = Net()
    scaler = torch.amp.GradScaler("cuda")
    ```

    ## Fix safety
    No fix is offered: weights in float32 take twice the memory.

    ## References
    - huggingface/peft documentation "Troubleshooting", dtype-related issues
    - huggingface/transformers issue 23165
    """

    code = "DEV613"
    name = "half-weights-scaled"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "half"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        numbers: Any = event.facts["half"]
        known = (timeline.storage(event.process, each) for each in numbers)
        storages = [each for each in known if each is not None]
        made = next((line for each in storages if (line := _made(timeline, each, event))), "")
        made = made or _written(timeline, event)
        count = int(event.facts.get("count", len(storages)))
        names = named(timeline, storages[:1]) if storages else "weights"
        more = f" and {count - 1} more" if count > 1 else ""
        return self.finding_in_run(
            timeline,
            event,
            f"the gradient scaler is given gradients of weights that are float16: {names}{more}"
            f"{made}",
            about=storages[0] if storages else None,
            met=storages,
            fixes=[Fix(CHANGE, Safety.DISPLAY, ())],
        )


def _written(timeline: Timeline, event: Event) -> str:
    """The only line of the file that says so."""
    site = event.site
    tree = timeline.tree(site.file) if site else None
    lines = {
        node.lineno
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Attribute) and node.attr in ("half", "float16")
    }
    if len(lines) != 1 or site is None:
        return ""
    return f", made so{place(Site(site.file, lines.pop()))}"


def _made(timeline: Timeline, storage: Storage, event: Event) -> str:
    by = converted_by(timeline, storage, event)
    return f", made so {by}" if by else ""
