from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import listed
from tensortrail.rules.checkpoints._shards import fitting_shards


class WeightNotInIndex(Rule):
    """A shard holds weights that the index does not list.

    ## What it does
    Reports a name in the header of a shard that is not in the `weight_map`.

    ## Why is this bad?
    Readers that follow the index never load the weight, and it keeps its initial values.

    ## Example
    ```
    $ tensortrail doctor my-model
    warning[CKP823] weight-not-in-index: model-00002-of-00002.safetensors holds 'lm_head.weight',
    which the index does not list
    ```

    ## Fix safety
    Write the index again from the headers of the shards.

    ## References
    - SHD403 finds the code that writes such an index
    """

    code = "CKP823"
    name = "weight-not-in-index"
    severity = Severity.WARNING
    reads = Part.INDEX

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for index in checkpoint.indexes:
            for file in fitting_shards(checkpoint, index).values():
                more = [key for key in file.tensors if key not in index.weight_map]
                if more and index.usable:
                    yield self.finding_in_file(
                        index.path,
                        f"{file.name} holds {listed(more)}, which the index does not list",
                        f'add the entry `"{more[0]}": "{file.name}"` to the `weight_map`',
                        line=1,
                        evidence={"found": counted(len(more), "weight")},
                    )
