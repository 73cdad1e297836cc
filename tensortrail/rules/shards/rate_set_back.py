from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Rule, Timeline
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import place_told

CHANGE = (
    "make the scheduler before the optimizer's state is loaded, and load the state of the "
    "scheduler too: `scheduler.load_state_dict(...)`"
)


class RateSetBack(Rule):
    """A scheduler made after an optimizer's state was loaded resets the learning rate.

    ## What it does
    In a recorded run, reports a scheduler of torch that sets an optimizer back to its first
    learning rate, if the optimizer had loaded a state whose rate an earlier scheduler had changed,
    and then makes its next step with the first rate. Also reports a scheduler that goes on for an
    optimizer that makes no more steps, while another one, which has no scheduler, steps the same
    weights.

    Not reported: schedulers that continue from `last_epoch` or whose own loaded state restores the
    rate; and new schedules that are made on purpose, because the program set the rate after the
    load, or the optimizer already had a scheduler when it loaded its state.

    ## Why is this bad?
    Training goes on with the rate of its first step: too large for weights that have nearly
    converged, and nothing fails.

    ## Example
    ```python
    optimizer.load_state_dict(saved["optimizer"])
    scheduler = LambdaLR(optimizer, decay)
    ```
    Use instead:
    ```python
    scheduler = LambdaLR(optimizer, decay)
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    ```

    ## Fix safety
    No fix is offered: the file may lack the state of the scheduler.

    ## References
    - torch-points3d/torch-points3d pull request 630, ultralytics/yolov5 issue 292
    - pytorch documentation of `torch.optim.lr_scheduler.LRScheduler`
    """

    code = "SHD466"
    name = "rate-set-back"
    severity = Severity.WARNING

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "set back"):
            facts = event.facts
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` sets the learning rate back to {facts['set back']:.6g}: the state "
                f"that `{facts['optimizer']}` loaded{place_told(facts.get('loaded'))} had "
                f"{facts['rate']:.6g}, but the next step used the first rate",
                fixes=[Fix(CHANGE, Safety.DISPLAY, ())],
            )
        for event in hooks_telling(timeline, "left behind"):
            made = place_told(event.facts.get("made"))
            other = f"another `{event.facts['other']}`" + (f", made{made}," if made else "")
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` changes the learning rate of `{event.facts['left behind']}`, which "
                f"makes no more steps: {other} steps the same weights, and keeps its rate",
                fixes=[Fix(f"make a scheduler for the new optimizer{made}", Safety.DISPLAY, ())],
            )
