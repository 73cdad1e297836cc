from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.sizes import MB, size

_TO = ("cpu", "meta")


class OffloadWithoutEffect(Rule):
    """A module was offloaded, but something else still holds its memory.

    ## What it does
    In a recorded run, reports a move of a whole module to the CPU or to meta after which more than
    half of the bytes that should have been freed, and at least 1 MB, are still alive, with the
    objects that hold them.

    ## Why is this bad?
    The next allocation runs out of memory, although the module says that it is on the CPU. A view,
    a state dict, a list or a closure that holds one old tensor keeps its whole storage.

    ## Example
    ```python
    weights = model.state_dict()
    model.to("cpu")  # the old weights stay on the device: `weights` holds them
    ```
    Use instead:
    ```python
    model.to("cpu")
    weights = model.state_dict()
    ```

    ## Fix safety
    No fix is offered: only the program knows whether the old tensors are still needed.

    ## References
    - pytorch/pytorch documentation, "Understanding CUDA Memory Usage"
    """

    code = "OFF108"
    name = "offload-without-effect"
    since = "0.2.0"
    severity = Severity.WARNING

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in by_line(filter(_is_offload, timeline.events(Did.MODULE))):
            idle = [each for each in events if _kept(each)]
            if not idle:
                continue
            event = idle[0]
            held, left = _kept(event), event.facts["left"]
            holders = [str(each) for each in event.facts.get("holders", ())]
            numbers = event.facts.get("storages", ())
            about = timeline.storage(event.process, numbers[0]) if numbers else None
            whole = sum(_kept(each) for each in idle)
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.facts.get('class')}` went from {_devices(event, 'before')} to "
                f"{_devices(event, 'after')}, but {size(held)} of the {size(left)} it left are "
                "still alive" + (f", held by {', '.join(holders)}" if holders else ""),
                confidence=Confidence.HIGH if holders else Confidence.MEDIUM,
                about=about,
                evidence={"moves": str(len(idle)), "still held": size(whole)},
            )


def _is_offload(event: Event) -> bool:
    before, after = (_places(event, key) for key in ("before", "after"))
    return bool(after) and set(after) <= set(_TO) and bool(set(before) - set(after) - {"meta"})


def _kept(event: Event) -> int:
    """The bytes that stayed, if they are most of those that should have gone."""
    held, left = (event.facts.get(key, 0) for key in ("held", "left"))
    return held if isinstance(held, int) and held >= MB and held * 2 > left else 0


def _places(event: Event, key: str) -> Mapping[str, int]:
    places = event.facts.get(key)
    return places if isinstance(places, Mapping) else {}


def _devices(event: Event, key: str) -> str:
    return " and ".join(_places(event, key))
