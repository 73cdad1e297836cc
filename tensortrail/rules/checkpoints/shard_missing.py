from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import are, counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import SHOWN, listed
from tensortrail.rules.checkpoints._shards import keys_by_file


class ShardMissing(Rule):
    """The index names a file that is missing.

    ## What it does
    Reports a file that the `weight_map` names and that does not exist.

    ## Why is this bad?
    `from_pretrained` raises, after it has read the shards before that one.

    ## Example
    ```
    $ tensortrail doctor my-model
    error[CKP821] shard-missing: the index names 'model-00002-of-00003.safetensors', which is
    missing: 12 weights cannot be loaded
     --> my-model/model.safetensors.index.json:210
    ```

    ## Fix safety
    No fix is offered: get the file.

    ## References
    - transformers: `OSError: ... does not appear to have a file named ...`
    """

    code = "CKP821"
    name = "shard-missing"
    severity = Severity.ERROR
    reads = Part.INDEX

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for index in checkpoint.indexes:
            found = {file.name for file in checkpoint.files} | checkpoint.names | checkpoint.outside
            missing = sorted(set(index.weight_map.values()) - found)
            for name in missing[:1]:
                keys = keys_by_file(index)
                lost = sum(len(keys[each]) for each in missing)
                verb = are(len(missing))
                yield self.finding_in_file(
                    index.path,
                    f"the index names {listed(missing)}, which {verb} missing: "
                    f"{counted(lost, 'weight')} cannot be loaded",
                    f"get the missing files: `hf download REPO {' '.join(missing[:SHOWN])}`",
                    line=index.line_of(name),
                    evidence={"expected": name, "found": "no such file"},
                )
