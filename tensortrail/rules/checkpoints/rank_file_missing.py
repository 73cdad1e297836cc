from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import are, counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import listed


class RankFileMissing(Rule):
    """The metadata names a rank's file that is missing.

    ## What it does
    Reports a file that `.metadata` names and that does not exist. A name that leads out of the
    folder is never opened.

    ## Why is this bad?
    Loading raises on the ranks that need a piece of the file. A node wrote to its own disk instead
    of the shared one, or the copy is incomplete.

    ## Example
    ```
    $ tensortrail doctor checkpoint-100
    error[CKP843] rank-file-missing: '__3_0.distcp' is missing: 120 pieces cannot be loaded
    ```

    ## Fix safety
    No fix is offered: copy the file from the node that wrote it.

    ## References
    - torch: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
    """

    code = "CKP843"
    name = "rank-file-missing"
    severity = Severity.ERROR
    reads = Part.METADATA

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        found = checkpoint.distributed
        parts = found.parts if found else ()
        missing = sorted({part.file for part in parts if part.file not in checkpoint.sizes})
        for name in missing[:1]:
            lost = sum(part.file in missing for part in parts)
            verb = are(len(missing))
            assert found is not None
            yield self.finding_in_file(
                found.path,
                f"{listed(missing)} {verb} missing: {counted(lost, 'piece')} cannot be loaded",
                f"copy {name} from the node that wrote it into this folder",
                evidence={"expected": name, "found": "no such file"},
            )
