from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoint_files import Trouble
from tensortrail.rules.checkpoints._flaws import from_flaws

_MEND = (
    "get it again: `hf download REPO {name} --force-download`, or write it from the "
    "headers of the shards"
)


class IndexUnreadable(Rule):
    """The index is not JSON, or has no usable `weight_map`.

    ## What it does
    Parses the index strictly, and reports the byte at which it breaks.

    ## Why is this bad?
    The checkpoint cannot be loaded, though every weight of it may be there.

    ## Example
    ```
    $ tensortrail doctor my-model
    error[CKP829] index-unreadable: it is not valid JSON: expecting ',' delimiter (byte 1,204)
    ```

    ## Fix safety
    The index can be written from the headers of the shards, if all of them are there.

    ## References
    - transformers: `json.decoder.JSONDecodeError`
    """

    code = "CKP829"
    name = "index-unreadable"
    severity = Severity.ERROR
    reads = Part.INDEX

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        yield from from_flaws(self, checkpoint, Trouble.INDEX, _MEND)
