from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import are
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import listed


class IntegersForFloats(Rule):
    """A weight is stored as integers, but the model has floats there.

    ## What it does
    With `--model`, reports a weight that is stored as integers and is floating-point in the model,
    if the configuration has no quantization.

    ## Why is this bad?
    Outputs are wrong, and no error is raised: the loader casts the integers to floats, so that
    quantized values are used without their scales.

    ## Example
    ```
    $ tensortrail doctor my-model --model own
    error[CKP867] integers-for-floats: 'model.layers.0.mlp.up_proj.weight' is stored as integers,
    but LlamaForCausalLM has floating-point weights there
    ```

    ## Fix safety
    No fix is offered: get the `quantization_config` that belongs to the weights.

    ## References
    - transformers: `PreTrainedModel.from_pretrained(..., dtype=...)`
    """

    code = "CKP867"
    name = "integers-for-floats"
    severity = Severity.ERROR
    reads = Part.MODEL

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        found = checkpoint.comparison
        if found is None or not found.integers or found.of_another_class:
            return
        verb = are(len(found.integers))
        yield self.finding_in_file(
            found.path,
            f"{listed(list(found.integers))} {verb} stored as integers, but {found.model} has "
            "floating-point weights there",
            "take the config.json that was saved with the weights, with its quantization_config",
            evidence={"expected": "floating-point values", "found": "integers"},
        )
