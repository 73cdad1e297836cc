from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._values import by_file


class ValuesNotFinite(Rule):
    """A stored weight holds NaN or infinite values.

    ## What it does
    With `--values`, reads every floating-point tensor and reports NaN and infinite values.

    ## Why is this bad?
    One NaN in a weight makes every output NaN. Training went on after an overflow, or bytes were
    damaged where no header shows it.

    ## Example
    ```
    $ tensortrail doctor model.safetensors --values
    error[CKP871] values-not-finite: 3 NaN and 0 infinite values in 'layers.7.mlp.weight'
    ```

    ## Fix safety
    No fix is offered: use an earlier checkpoint.

    ## References
    - torch: `torch.isfinite`
    """

    code = "CKP871"
    name = "values-not-finite"
    severity = Severity.ERROR
    reads = Part.VALUES

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for path, values in by_file(checkpoint):
            odd = [each for each in values if each.nans or each.infinite]
            for each in odd[:1]:
                others = f" (and {counted(len(odd) - 1, 'more tensor')})" if len(odd) > 1 else ""
                yield self.finding_in_file(
                    path,
                    f"{each.nans:,} NaN and {each.infinite:,} infinite values in "
                    f"{each.tensor.name!r}{others}",
                    "use an earlier checkpoint, or get the file again if another copy is whole",
                    span=(each.tensor.begin, each.tensor.end),
                    evidence={"expected": "finite values"},
                )
