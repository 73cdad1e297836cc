from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._shards import family, sets_without_index


class IndexMissing(Rule):
    """A checkpoint is split into shards and has no index.

    ## What it does
    Reports files named `NAME-00001-of-00004.SUFFIX` without their index.

    ## Why is this bad?
    `from_pretrained` raises, because it finds no checkpoint in the folder.

    ## Example
    ```
    $ tensortrail doctor my-model
    error[CKP825] index-missing: there is no model.safetensors.index.json for 2 shards
    ```

    ## Fix safety
    The index can be written from the headers of the shards, if all of them are there.

    ## References
    - transformers: `OSError: Error no file named pytorch_model.bin, model.safetensors ... found`
    """

    code = "CKP825"
    name = "index-missing"
    severity = Severity.ERROR
    reads = Part.SHARDS

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        known = {family(index) for index in checkpoint.indexes}
        for (stem, suffix, count), names in sets_without_index(checkpoint):
            if (stem, suffix) in known:
                continue
            first = checkpoint.file(names[0])
            assert first is not None
            index = f"{stem}.{suffix}.index.json"
            here = f"{len(names)} of {count} shards"
            incomplete = f", and {count - len(names)} of {count} are missing"
            yield self.finding_in_file(
                first.path,
                f"there is no {index} for {counted(len(names), 'shard')}"
                + ("" if len(names) == count else incomplete),
                f"get it: `hf download REPO {index}`, or write it from the headers of the shards",
                evidence={"expected": index, "found": here},
            )
