from __future__ import annotations

import os
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._pieces import misplaced, parts_by_file


class StoredPieceMisplaced(Rule):
    """A piece of a distributed checkpoint lies outside of its file or over another.

    ## What it does
    Reports an entry of `storage_data` that lies beyond the end of its file or overlaps another.

    ## Why is this bad?
    Loading raises, or reads the bytes of another tensor. The file was cut, or belongs to another
    save.

    ## Example
    ```
    $ tensortrail doctor checkpoint-100
    error[CKP844] stored-piece-misplaced: 'model.head.weight' lies beyond the end of __1_0.distcp
    seen: expected 9,216 bytes, found 8,192 bytes
    ```

    ## Fix safety
    No fix is offered: copy the file again.

    ## References
    - torch: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
    """

    code = "CKP844"
    name = "stored-piece-misplaced"
    severity = Severity.ERROR
    reads = Part.METADATA

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for name, parts in sorted(parts_by_file(checkpoint).items()):
            size = checkpoint.sizes.get(name)
            if size is None:
                continue
            for part, told, expected in misplaced(parts, size):
                yield self.finding_in_file(
                    os.path.join(checkpoint.path, name),
                    f"{part.key!r} {told}",
                    f"copy {name} again from where it was written",
                    span=(part.begin, part.end),
                    evidence={"expected": expected, "found": f"{size:,} bytes"},
                )
                break
