from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part, Trouble
from tensortrail.rules.checkpoints._flaws import DOWNLOAD, from_flaws


class FileOfZeros(Rule):
    """A file is empty, or zeros are where its header or directory should be.

    ## What it does
    Reports empty files, files that begin with zeros, and zip archives that end in them. Zeros
    among the values of tensors are not looked at here.

    ## Why is this bad?
    The space was set aside and the content never came: a download that was cut off, a full disk,
    a crash before the data reached it.

    ## Example
    ```
    $ tensortrail doctor model.safetensors
    error[CKP804] file-of-zeros: the file begins with 1,024 zeros: space was set aside, never
    written
     --> model.safetensors: byte 0
    ```

    ## Fix safety
    No fix is offered: the bytes are not here. Get the file again, then run the check again.

    ## References
    - safetensors: `InvalidHeaderStart`
    """

    code = "CKP804"
    name = "file-of-zeros"
    severity = Severity.ERROR
    reads = Part.FILES

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        yield from from_flaws(self, checkpoint, Trouble.ZEROS, DOWNLOAD)
