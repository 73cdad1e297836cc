from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part, WeightFile, shard_name
from tensortrail.rules.checkpoints._flaws import counted
from tensortrail.rules.checkpoints._shards import form_of, is_another, keys_by_file, shards_of

_MEND = "get every shard of one save: `hf download REPO --force-download`, or save again"
_ALIKE = 3
"""Kinds of weights that a shard must share with others to be compared."""
Looks = dict[str, tuple[set[object], set[object]]]
"""Element types and shapes of each kind of weight."""


class ShardOfAnotherSave(Rule):
    """A shard does not belong to the others.

    ## What it does
    Reports a shard that holds nothing of what the index expects in it, shards whose names count
    different totals, and a shard whose weights differ from those of the same layers in all other
    shards in element type or shape, every one of them.

    ## Why is this bad?
    The folder mixes two saves: an interrupted upload, a second training run into the same folder,
    a shard of another precision. The model loads and is a mixture.

    ## Example
    ```
    $ tensortrail doctor my-model
    error[CKP828] shard-of-another-save: model-00002-of-00003.safetensors holds none of the 12
    weights that the index expects in it
    ```

    ## Fix safety
    No fix is offered: get the shard that belongs here.

    ## References
    - huggingface_hub issue 4725
    """

    code = "CKP828"
    name = "shard-of-another-save"
    severity = Severity.ERROR
    reads = Part.INDEX

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for index in checkpoint.indexes:
            shards, expected = shards_of(checkpoint, index), keys_by_file(index)
            counts = {each.total for name in expected if (each := shard_name(name))}
            if len(counts) > 1:
                told = " and ".join(f"{each} shards" for each in sorted(counts))
                yield self.finding_in_file(
                    index.path, f"the index names files of sets of {told}", _MEND, line=1
                )
            strangers = {name for name, file in shards.items() if is_another(expected[name], file)}
            for name in sorted(strangers):
                told = f"{name} holds none of the {counted(len(expected[name]), 'weight')}"
                yield self.finding_in_file(
                    shards[name].path, f"{told} that the index expects in it", _MEND
                )
            if not strangers:
                yield from self._departing(shards)

    def _departing(self, shards: dict[str, WeightFile]) -> Iterator[Finding]:
        """The shard that differs from all others in every kind of weight it shares with them."""
        looks = {name: _looks(file) for name, file in shards.items()}
        if len(looks) < 3:
            return
        for name, own in looks.items():
            others = [each for other, each in looks.items() if other != name]
            if what := _difference(own, others):
                yield self.finding_in_file(
                    shards[name].path,
                    f"the weights of {name} have another {what} than those of the same layers in "
                    "all other shards",
                    _MEND,
                    severity=Severity.WARNING,
                )


def _looks(file: WeightFile) -> Looks:
    found: Looks = {}
    for key, tensor in file.tensors.items():
        dtypes, shapes = found.setdefault(form_of(key), (set(), set()))
        dtypes.add(tensor.dtype)
        shapes.add(tensor.shape)
    return found


def _difference(own: Looks, others: list[Looks]) -> str:
    """What is different in every kind of weight that all the others agree on; "" if nothing."""
    compared = [
        (own[form], [other[form] for other in others if form in other])
        for form in own
        if any(form in other for other in others)
    ]
    if len(compared) < _ALIKE:
        return ""
    for place, what in enumerate(("element type", "shape")):
        if all(_apart(mine[place], [each[place] for each in rest]) for mine, rest in compared):
            return what
    return ""


def _apart(own: set[object], others: list[set[object]]) -> bool:
    """The others agree with each other, and not with this one."""
    return all(each == others[0] for each in others) and own.isdisjoint(others[0])
