from __future__ import annotations

from collections.abc import Iterable, Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.shared.wrapped_names import wrappers_of


class WrappedNames(Rule):
    """Every name begins with the prefix of a wrapper around the model.

    ## What it does
    Reports files in which all names begin with `_orig_mod.` (torch.compile), `module.`
    (DistributedDataParallel), or the prefixes of FSDP and of checkpointed modules.

    ## Why is this bad?
    Loaded into the model itself, no name fits: `load_state_dict` raises, or, with `strict=False`,
    loads nothing without an error. The state dict of the wrapper was saved instead of the model's.

    ## Example
    ```
    $ tensortrail doctor pytorch_model.bin
    warning[CKP864] wrapped-names: all 201 names begin with '_orig_mod.'
    ```

    ## Fix safety
    No fix is offered here: the weights are right, only their names are wrong.

    ## References
    - SHD409 finds the line of a program that saves such a state dict
    """

    code = "CKP864"
    name = "wrapped-names"
    severity = Severity.WARNING
    reads = Part.FILES

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for file in checkpoint.files:
            for key, names in _state_dicts(file.tensors):
                prefixes = "".join(wrappers_of(names))
                if len(names) < 2 or not prefixes:
                    continue
                where = f" below {key!r}" if key else ""
                yield self.finding_in_file(
                    file.path,
                    f"all {len(names):,} names{where} begin with {prefixes!r}",
                    "save the state dict of the module inside (`model._orig_mod`, `.module`), or "
                    f"load with `{{key.removeprefix({prefixes!r}): ...}}`",
                    evidence={"found": names[0]},
                )


def _state_dicts(stored: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """All names; or, where they lie in several dicts (`model.module.head.weight` of a file with
    "model" and "optimizer"), those of each with its key."""
    names = [name for name in stored if name]
    if wrappers_of(names):
        yield "", names
        return
    below: dict[str, list[str]] = {}
    for name in names:
        key, _, rest = name.partition(".")
        below.setdefault(key, []).append(rest)
    yield from ((key, each) for key, each in below.items() if all(each))
