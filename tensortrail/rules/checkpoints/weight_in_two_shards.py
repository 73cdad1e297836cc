from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._shards import fitting_shards


class WeightInTwoShards(Rule):
    """Two shards hold a weight of the same name.

    ## What it does
    Reports names that are in the headers of two shards of an index.

    ## Why is this bad?
    Which of the two is loaded depends on the reader: some follow the index, some read every shard
    in order and keep the last.

    ## Example
    ```
    $ tensortrail doctor my-model
    warning[CKP830] weight-in-two-shards: 'lm_head.weight' is in model-00001-of-00002.safetensors
    and in model-00002-of-00002.safetensors
    ```

    ## Fix safety
    No fix is offered: only the writer knows which of the two is right.

    ## References
    - transformers and vLLM read shards in different orders
    """

    code = "CKP830"
    name = "weight-in-two-shards"
    severity = Severity.WARNING
    reads = Part.INDEX

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for index in checkpoint.indexes:
            first: dict[str, str] = {}
            twice: dict[str, str] = {}
            for name, file in sorted(fitting_shards(checkpoint, index).items()):
                for key in file.tensors:
                    if first.setdefault(key, name) != name and key in index.weight_map:
                        twice[key] = name
            for key, name in list(twice.items())[:1]:
                others = f" (and {len(twice) - 1:,} more weights)" if len(twice) > 1 else ""
                yield self.finding_in_file(
                    index.path,
                    f"{key!r} is in {first[key]} and in {name}{others}",
                    f"save again without the copy (the index means {index.weight_map[key]})",
                    line=index.line_of(key),
                )
