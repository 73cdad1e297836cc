from __future__ import annotations

import re
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.devices._errors import errors

_FORKED = re.compile(r"Cannot re-initialize CUDA in forked subprocess")
CHANGE = (
    "return CPU tensors from the dataset and move the batch in the loop, or start the workers "
    'with `multiprocessing_context="spawn"`'
)


class CudaInForkedWorker(Rule):
    """A process that was forked after CUDA had begun uses CUDA.

    ## What it does
    Reports the line at which a forked process, a DataLoader worker as a rule, asks for a GPU.
    Found in recorded runs only.

    ## Why is this bad?
    CUDA cannot be used in a fork of a process that used it before: torch raises a RuntimeError,
    and the message of the DataLoader buries the line in a traceback of the worker.

    ## What you may see
    ```
    RuntimeError: Cannot re-initialize CUDA in forked subprocess.
    ```

    ## Example
    ```python
    def __getitem__(self, index):
        return self.images[index].to("cuda")
    ```
    Use instead:
    ```python
    def __getitem__(self, index):
        return self.images[index]
    ```

    ## Fix safety
    Unsafe: a recorded run offers to leave the tensor on the CPU, and the loop has to move it. With
    `multiprocessing_context="spawn"` workers may use CUDA; they import the program again.

    ## References
    - pytorch/pytorch documentation, "Multiprocessing best practices"
    """

    code = "DEV516"
    name = "cuda-in-forked-worker"
    since = "0.2.0"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, _FORKED):
            event = events[0]
            where = f" in `{event.site.function}`" if event.site and event.site.function else ""
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}`{where} uses CUDA in a forked process, which is "
                "not possible after the parent has used it",
                fixes=[_left_on_cpu(timeline, event)],
            )


def _left_on_cpu(timeline: Timeline, event: Event) -> Fix:
    """The expression without the move: what a worker returns is moved in the loop."""
    name = event.op.rpartition(".")[2]
    call = timeline.call(event.site, name) if event.site and name in ("to", "cuda") else None
    head, found, _ = call.source.rpartition(f".{name}(") if call else ("", "", "")
    edit = Edit(call, head) if call and found else None
    return (edit and timeline.fix(CHANGE, Safety.UNSAFE, edit)) or Fix(CHANGE, Safety.DISPLAY, ())
