from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import listed
from tensortrail.rules.checkpoints._values import by_file, is_matrix


class ConstantWeight(Rule):
    """All values of a stored matrix are the same.

    ## What it does
    With `--values`, reports tensors of two or more dimensions in which every value is equal.

    Not reported: vectors (norms begin with ones, biases with zeros), integers, and the second
    halves of LoRA pairs, which begin with zeros.

    ## Why is this bad?
    The weight was never trained or never written: reserved memory, a hole in the file, or a layer
    that nothing initialised.

    ## Example
    ```
    $ tensortrail doctor model.safetensors --values
    warning[CKP872] constant-weight: all values of 'lm_head.weight' are zero
    ```

    ## Fix safety
    No fix is offered: save again, or get the file again.

    ## References
    - SHD405 and NEW306 find the code that leaves weights without values
    """

    code = "CKP872"
    name = "constant-weight"
    severity = Severity.WARNING
    reads = Part.VALUES

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for path, values in by_file(checkpoint):
            odd = [each for each in values if each.constant and is_matrix(each)]
            if odd:
                what = "are zero" if all(each.zero for each in odd) else "are the same"
                yield self.finding_in_file(
                    path,
                    f"all values of {listed([each.tensor.name for each in odd])} {what}",
                    "save again and compare with the model in memory, or get the file again",
                    span=(odd[0].tensor.begin, odd[0].tensor.end),
                    evidence={"found": counted(len(odd), "tensor")},
                )
