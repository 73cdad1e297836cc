from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.failures import note_if_handled
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.saved_files import saves_before
from tensortrail.rules.shared.told_loads import load_told

_NUMBER = re.compile(r"on (\w+) device (\d+) but .*device_count\(\) is (\d+)")
_NONE = re.compile(r"on an? (\w+) device but")
CPU = '"cpu"'


class CheckpointDeviceNotHere(Rule):
    """A file is loaded onto a GPU that this machine or process does not have.

    ## What it does
    In a recorded run, reports a `torch.load` that failed because it puts tensors on a missing
    device: the one in `map_location`, or the one that they were saved from on another rank or
    machine.

    ## Why is this bad?
    The program ends. A checkpoint cannot be loaded with fewer GPUs than it was written with.

    ## What you may see
    ```
    RuntimeError: Attempting to deserialize object on CUDA device 1 but torch.cuda.device_count()
    is 1.
    ```

    ## Example
    ```python
    state = torch.load(path, map_location="cuda:1")
    ```
    Use instead:
    ```python
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state)
    ```

    ## Fix safety
    Unsafe: computations with the loaded tensors themselves run on the CPU. `load_state_dict` copies
    them to where the weights are.

    ## References
    - pytorch documentation of `torch.load`, `map_location`
    """

    code = "DEV611"
    name = "checkpoint-device-not-here"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "no device"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        facts, name = event.facts, os.path.basename(str(event.facts.get("path"))) or "the file"
        device, there = _devices(str(facts["no device"]))
        asked = facts.get("asked")
        if asked:
            why = f"`map_location` says {asked}"
        else:
            saved = next(saves_before(timeline, event), None)
            why = f"{name} has tensors that were saved from there{where(saved)}"
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}` puts tensors on {device}, and {there}: {why}",
            severity=note_if_handled(timeline, event),
            fixes=[_to_the_cpu(timeline, event.site)],
        )


def _devices(message: str) -> tuple[str, str]:
    """The one that was meant, and what is there."""
    if found := _NUMBER.search(message):
        count = int(found[3])
        kind = found[1].lower()
        return f"{kind}:{found[2]}", f"there {'is 1 GPU' if count == 1 else f'are {count} GPUs'}"
    found = _NONE.search(message)
    return (found[1].lower() if found else "another device"), "there is none here"


def _to_the_cpu(timeline: Timeline, site: Site | None) -> Fix:
    text = f"read them on the CPU: `map_location={CPU}`; `load_state_dict` brings them to the model"
    return edited(timeline, text, load_told(timeline, site, "map_location", CPU, 1))
