from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.shared.wrapped_names import wrappers_of


class WrappedNames(Rule):
    """Every name begins with what a wrapper around the model adds.

    ## What it does
    Reports files in which all names begin with `_orig_mod.` (torch.compile), `module.`
    (DistributedDataParallel), or the prefixes of FSDP and of checkpointed modules.

    ## Why is this bad?
    The state dict of the wrapper was saved instead of the model's. Loaded into the model itself,
    no name fits; with `strict=False` nothing is loaded and nothing is said.

    ## Example
    ```
    $ tensortrail doctor pytorch_model.bin
    warning[CKP864] wrapped-names: all 201 names begin with '_orig_mod.'
    ```

    ## Fix safety
    No fix is offered here: the weights are right, only their names are not.

    ## References
    - SHD409 finds the line of a program that saves such a state dict
    """

    code = "CKP864"
    name = "wrapped-names"
    severity = Severity.WARNING
    reads = Part.FILES

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for file in checkpoint.files:
            names = [name for name in file.tensors if name]
            if len(names) > 1 and (prefixes := "".join(wrappers_of(names))):
                yield self.finding_in_file(
                    file.path,
                    f"all {len(names):,} names begin with {prefixes!r}",
                    "save the state dict of the module inside (`model._orig_mod`, `.module`), or "
                    f"load with `{{key.removeprefix({prefixes!r}): ...}}`",
                    evidence={"found": names[0]},
                )
