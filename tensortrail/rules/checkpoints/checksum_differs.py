from __future__ import annotations

import os
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import are
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import DOWNLOAD, listed


class ChecksumDiffers(Rule):
    """A file differs from the one that the manifest lists, or is missing.

    ## What it does
    With `--manifest verify`, reports a file in `SHA256SUMS` that is missing or has another SHA-256.
    `--manifest write` writes the list, and `sha256sum -c SHA256SUMS` checks it too.

    ## Why is this bad?
    The file was damaged or replaced after the list was written. The headers need not show it.

    ## Example
    ```
    $ tensortrail doctor my-model --manifest verify
    error[CKP881] checksum-differs: 'model.safetensors' differs from the checksum in SHA256SUMS
    ```

    ## Fix safety
    No fix is offered: get the file again. If it was changed on purpose, write the list again.

    ## References
    - GNU coreutils: `sha256sum`
    """

    code = "CKP881"
    name = "checksum-differs"
    severity = Severity.ERROR
    reads = Part.MANIFEST

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        found = checkpoint.manifest
        if found is None:
            return
        folder = os.path.dirname(found.path)
        names = list(found.differing)
        for name in names[:1]:
            expected, seen = found.differing[name]
            verb = "s" if len(names) == 1 else ""
            yield self.finding_in_file(
                os.path.join(folder, name),
                f"{listed(names)} differ{verb} from the checksum in {os.path.basename(found.path)}",
                DOWNLOAD.replace("{name}", name),
                evidence={"expected": expected, "found": seen},
            )
        if found.missing:
            verb = are(len(found.missing))
            yield self.finding_in_file(
                found.path,
                f"{listed(list(found.missing))} {verb} listed, but missing",
                DOWNLOAD.replace("{name}", found.missing[0]),
                line=1,
                evidence={"found": "no such file"},
            )
