from __future__ import annotations

import os
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import are, counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import listed


class FileNotInManifest(Rule):
    """The folder has a file that the manifest does not list.

    ## What it does
    With `--manifest verify`, reports a file of the folder that is not in `SHA256SUMS`.

    ## Why is this bad?
    A weight file that was added to a folder may be loaded in place of another.

    ## Example
    ```
    $ tensortrail doctor my-model --manifest verify
    warning[CKP882] file-not-in-manifest: 'model.safetensors' is not in SHA256SUMS
    ```

    ## Fix safety
    No fix is offered: remove the file, or write the list again.

    ## References
    - CKP824 finds files that are loaded in the place of others
    """

    code = "CKP882"
    name = "file-not-in-manifest"
    severity = Severity.WARNING
    reads = Part.MANIFEST

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        found = checkpoint.manifest
        if found is not None and found.unlisted:
            verb = are(len(found.unlisted))
            yield self.finding_in_file(
                found.path,
                f"{listed(list(found.unlisted))} {verb} not in {os.path.basename(found.path)}",
                "remove files that do not belong here, or list them: `doctor PATH --manifest "
                "write`",
                line=1,
                evidence={"found": counted(len(found.unlisted), "file")},
            )
