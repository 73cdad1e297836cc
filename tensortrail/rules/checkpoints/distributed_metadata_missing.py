from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import counted

METADATA = ".metadata"


class DistributedMetadataMissing(Rule):
    """The files of ranks are there, and the `.metadata` is not.

    ## What it does
    Looks for `.metadata` beside files named `*.distcp`.

    ## Why is this bad?
    The metadata is written last, when every rank is done: the save did not finish. What the ranks
    wrote may be complete or not; nothing says which tensors are where.

    ## Example
    ```
    $ tensortrail doctor checkpoint-100
    error[CKP842] distributed-metadata-missing: 8 files of ranks and no .metadata
    ```

    ## Fix safety
    No fix is offered: use an earlier checkpoint.

    ## References
    - torch: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
    """

    code = "CKP842"
    name = "distributed-metadata-missing"
    severity = Severity.ERROR
    reads = Part.RANKS

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        if checkpoint.sizes and METADATA not in checkpoint.names and not checkpoint.single:
            yield self.finding_in_file(
                checkpoint.path,
                f"{counted(len(checkpoint.sizes), 'file')} of ranks and no {METADATA}",
                "use an earlier checkpoint, or save again and wait until the save returns",
                evidence={"expected": METADATA, "found": "no such file"},
            )
