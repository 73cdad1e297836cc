from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.hook_events import hooks_telling


class StateInCheckpoint(Rule):
    """A module that is checkpointed keeps something from one run of its `forward` to the next.

    ## What it does
    In a recorded run, reports the backward pass that failed because a checkpointed module gave
    other tensors when it was run again, with the attributes that its `forward` reads and changes: a
    cache of keys and values, a list that grows, a counter.

    Not reported: a failure that the program catches.

    ## Why is this bad?
    The program ends in the backward pass, far from the line that keeps the state, and the message
    has the shapes of tensors without names. Where the shapes happen to be the same, nothing is
    raised and the gradients are wrong.

    ## What you may see
    ```
    torch.utils.checkpoint.CheckpointError: Recomputed values for the following tensors have
    different metadata than during the forward pass.
    ```

    ## Example
    ```python
    def forward(self, x):
        if self.cache is not None:
            x = torch.cat([self.cache, x], dim=1)
        self.cache = x.detach()
    ```
    Use instead:
    ```python
    def forward(self, x):
        if self.cache is not None:
            x = torch.cat([self.cache, x], dim=1)
        return x  # and the caller keeps the cache, outside of what is checkpointed
    ```

    ## Fix safety
    No fix is offered: what the state is for is up to the program.

    ## References
    - pytorch documentation of `torch.utils.checkpoint`
    """

    code = "STO225"
    name = "state-in-checkpoint"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "recomputed"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        states = list(_states(event.facts.get("states", ())))
        which = ", ".join(f"`{path}` ({line})" for path, line in states[:3])
        text = "set it outside of what is checkpointed, or do not checkpoint while it is kept"
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.facts['recomputed']}` is run again for its gradients, and its `forward` "
            f"reads and changes {which}: the second run finds what the first has left",
            fixes=[Fix(text, Safety.DISPLAY, ())],
        )


def _states(rows: Any) -> Iterator[tuple[str, str]]:
    for row in rows:
        match row:
            case [str(path), str(file), int(line)]:
                yield path, f"{os.path.basename(file)}:{line}"
