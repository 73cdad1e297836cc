from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import are
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoint_files import Format, WeightFile
from tensortrail.rules.checkpoints._flaws import listed
from tensortrail.rules.checkpoints._torchao import IS_PART, NAMES, described, scales_fit

_AGAIN = "get the file again, or save the quantized model again: `model.save_pretrained(folder)`"


class TorchaoPartsWrong(Rule):
    """The parts of a weight that torchao quantized do not fit together.

    ## What it does
    torchao stores a quantized weight in safetensors as several tensors (`_weight_qdata`,
    `_weight_scale`), and the metadata of the header says how they belong together. Reports such
    parts without that metadata, weights with a missing part, and scales that are not one for each
    block.

    ## Why is this bad?
    `from_pretrained` raises, or gives such weights initial values. Tools that copy tensors from
    file to file (merging, resharding, converting) drop the metadata.

    ## Example
    ```
    $ tensortrail doctor my-model
    error[CKP869] torchao-parts-wrong: 'layers.0.q_proj._weight_qdata' and 6 more are parts of
    weights of torchao, but no header says which parts form a weight
    ```

    ## Fix safety
    No fix is offered: without the metadata, what it said is unknown.

    ## References
    - torchao, `prototype/safetensors/safetensors_support.py`
    - transformers, `quantizers/quantizer_torchao.py`
    """

    code = "CKP869"
    name = "torchao-parts-wrong"
    severity = Severity.ERROR
    reads = Part.SAFETENSORS

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        files = [file for file in checkpoint.files if file.format is Format.SAFETENSORS]
        named = {name for index in checkpoint.indexes for name in index.weight_map.values()}
        if named - {file.name for file in files} or any(file.flaws for file in files):
            return  # what is not here may hold the rest
        for file in files[:1]:
            if told := _told(files, alone=checkpoint.single):
                yield self.finding_in_file(file.path, told, _AGAIN)


def _told(files: list[WeightFile], alone: bool) -> str:
    """`alone`: one file was named, which may be a shard."""
    stored = {name: each for file in files for name, each in file.tensors.items()}
    merged = {key: value for file in files for key, value in file.metadata.items()}
    parts = [name for name in stored if IS_PART.fullmatch(name)]
    tensors = described(merged) if NAMES in merged else None
    if parts and tensors is None:
        verb = "is a part" if len(parts) == 1 else "are parts"
        return (
            f"{listed(parts)} {verb} of weights of torchao, but no header says which parts form a "
            "weight"
        )
    for tensor in tensors or ():
        lost = [part for part in tensor.parts if part not in stored]
        if lost and not alone:
            verb = are(len(lost))
            return f"{tensor.name!r} cannot be put together: {listed(lost)} {verb} not stored"
        if not scales_fit(tensor, stored):
            return f"{tensor.name!r} does not have one scale for each block of its values"
    return ""
