from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import listed


class WeightMissing(Rule):
    """The model has weights that the checkpoint does not hold.

    ## What it does
    With `--model`, builds the model of the configuration on meta and gives the stored names and
    shapes to the library's own loader, with its conversion mapping. Reports the weights that it
    would fill with initial values. If most are missing, reports only that the checkpoint is of
    another class.

    ## Why is this bad?
    The model loads, with a warning at most, and these weights are random.

    ## Example
    ```
    $ tensortrail doctor my-model --model own
    error[CKP861] weight-missing: LlamaForCausalLM has 'lm_head.weight', which the checkpoint does
    not hold
    ```

    ## Fix safety
    No fix is offered: name the right configuration, or get the weights.

    ## References
    - transformers: `from_pretrained(..., output_loading_info=True)`
    """

    code = "CKP861"
    name = "weight-missing"
    severity = Severity.ERROR
    reads = Part.MODEL

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        found = checkpoint.comparison
        if found is None or not found.missing:
            return
        if found.of_another_class:
            told = (
                f"{len(found.missing):,} of the {found.expected:,} weights of {found.model} are "
                "missing: this is the checkpoint of another class"
            )
            mend = "name the class that saved it in `architectures`, or give its `--model`"
        else:
            names = listed(list(found.missing))
            told = f"{found.model} has {names}, which the checkpoint does not hold"
            mend = "get the shard that holds them, or save again from the whole model"
        yield self.finding_in_file(
            found.path,
            told,
            mend,
            evidence={"expected": counted(found.expected, "weight"), "found": f"{found.stored:,}"},
        )
