from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part


class TiedWeightsDiffer(Rule):
    """Two weights are one in the model, and are stored with different values.

    ## What it does
    With `--model`, reports names that the library's own model ties and that are both stored, with
    different bytes.

    ## Why is this bad?
    Loading keeps one of the two, and no error is raised. A head that was trained apart from the
    embedding is lost, or the reverse, and the model gives other results than the saved one.

    ## Example
    ```
    $ tensortrail doctor my-model --model own
    error[CKP866] tied-weights-differ: 'lm_head.weight' and 'model.embed_tokens.weight' are one
    weight of LlamaForCausalLM, and are stored with different values
    ```

    ## Fix safety
    No fix is offered: set `tie_word_embeddings` to false if both were trained.

    ## References
    - transformers: `PretrainedConfig.tie_word_embeddings`
    """

    code = "CKP866"
    name = "tied-weights-differ"
    severity = Severity.ERROR
    reads = Part.MODEL

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        found = checkpoint.comparison
        for one, other in found.tied_apart if found else ():
            assert found is not None
            yield self.finding_in_file(
                found.path,
                f"{one!r} and {other!r} are one weight of {found.model}, and are stored with "
                "different values",
                "set `tie_word_embeddings` to false in config.json if both were trained, or "
                "leave out the one that is old",
                evidence={"expected": "the same bytes", "found": "different ones"},
            )
