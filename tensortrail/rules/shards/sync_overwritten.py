from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Did, Rule, Timeline
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.loads import file_of
from tensortrail.rules.shared.operands import named


class SyncOverwritten(Rule):
    """Weights are synced into a model, then its file is loaded over them.

    ## What it does
    In a recorded run, reports weights that came from a file, then got the values of another model,
    and then those of a file again, if nothing read the values in between and something reads the
    last ones. The finding names the sync, the load and the operation that reads.

    Not reported: weights that are synced again before they are read.

    ## Why is this bad?
    The engine answers with the weights of its file, not with those of the trainer, and no error is
    raised. The answers look right, because the file is a good model, and training on them has no
    effect.

    ## Example
    ```python
    engine.load_state_dict(trainer.state_dict())
    engine.wake_up()  # reads its file again
    engine.generate(prompts)
    ```
    Use instead:
    ```python
    engine.wake_up()
    engine.load_state_dict(trainer.state_dict())
    engine.generate(prompts)
    ```

    ## Fix safety
    No fix is offered: the order of calls is the program's.

    ## References
    - huggingface/trl#5312: the engine was reloaded from its file after the weights were synced
    """

    code = "SHD419"
    name = "sync-overwritten"
    since = "0.2.0"
    severity = Severity.WARNING

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for same in by_line(e for e in timeline.events(Did.HOOK) if "synced" in e.facts):
            load = same[0]
            names = named(timeline, [each.storage for each in same if each.storage])
            yield self.finding_in_run(
                timeline,
                load,
                f"{names}: the values written at {load.facts['synced']} are lost: this line "
                f"loads those of {file_of(load)} over them before anything reads them, and "
                f"{load.facts.get('read')} reads the loaded ones",
                evidence={"weights": str(len(same))},
            )
