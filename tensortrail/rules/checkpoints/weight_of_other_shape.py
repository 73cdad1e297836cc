from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part


class WeightOfOtherShape(Rule):
    """A stored weight has another shape than in the model.

    ## What it does
    With `--model`, reports weights whose shape differs from the model's, after the library's own
    conversion mapping.

    ## Why is this bad?
    `from_pretrained` raises, or, with `ignore_mismatched_sizes=True`, gives the weight initial
    values.

    ## Example
    ```
    $ tensortrail doctor my-model --model own
    error[CKP863] weight-of-other-shape: 'lm_head.weight' of LlamaForCausalLM has another shape
    seen: expected [32064, 4096], found [32000, 4096]
    ```

    ## Fix safety
    No fix is offered: the vocabulary or another size in the configuration is not that of the
    weights.

    ## References
    - transformers: `from_pretrained(..., output_loading_info=True)`
    """

    code = "CKP863"
    name = "weight-of-other-shape"
    severity = Severity.ERROR
    reads = Part.MODEL

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        found = checkpoint.comparison
        for name, (stored, expected) in list(found.mismatched.items() if found else ())[:1]:
            assert found is not None
            more = len(found.mismatched) - 1
            others = f" (and {counted(more, 'more weight')})" if more else ""
            yield self.finding_in_file(
                found.path,
                f"{name!r} of {found.model} has another shape{others}",
                "set the sizes of the configuration to those of the weights, or get the right one",
                evidence={"expected": str(list(expected)), "found": str(list(stored))},
            )
