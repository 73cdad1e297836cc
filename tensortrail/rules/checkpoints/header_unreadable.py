from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoint_files import Trouble
from tensortrail.rules.checkpoints._flaws import SAVE_AGAIN, from_flaws


class HeaderUnreadable(Rule):
    """The header of a safetensors or GGUF file is invalid.

    ## What it does
    Reports a header that is not a JSON object, is longer than readers accept, or has an entry with
    an invalid element type, shape or offset. The finding names the byte and the entry.

    ## Why is this bad?
    The library refuses the whole file, with all its good tensors.

    ## Example
    ```
    $ tensortrail doctor model.safetensors
    error[CKP805] header-unreadable: 'lm_head.weight' in the header: no element type 'F12' is
    known
    ```

    ## Fix safety
    No fix is offered: save the file again, or get it again.

    ## References
    - safetensors: https://github.com/safetensors/safetensors#format
    - safetensors: `InvalidHeaderDeserialization`, `HeaderTooLarge`
    """

    code = "CKP805"
    name = "header-unreadable"
    severity = Severity.ERROR
    reads = Part.FILES

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        yield from from_flaws(self, checkpoint, Trouble.HEADER, SAVE_AGAIN)
