from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.plurals import counted
from tensortrail.rules.base import Rule
from tensortrail.rules.checkpoint import Checkpoint, Part
from tensortrail.rules.checkpoints._flaws import listed
from tensortrail.rules.checkpoints._layout import layout, readable


class TensorMisaligned(Rule):
    """The bytes of a tensor begin at an offset that its element size does not divide.

    ## What it does
    Reports files whose header does not end at a multiple of 8 bytes, and tensors at an offset that
    their element size does not divide.

    ## Why is this bad?
    Programs that map the file and use the bytes in place (NumPy views, C++, GPU direct storage)
    copy every tensor, or refuse it. The safetensors library reads such a file.

    ## Example
    ```
    $ tensortrail doctor model.safetensors
    note[CKP809] tensor-misaligned: the bytes of 12 tensors begin at addresses that their element
    size does not divide
    ```

    ## Fix safety
    Loading and saving the file with today's safetensors aligns it.

    ## References
    - safetensors: https://github.com/safetensors/safetensors#format
    """

    code = "CKP809"
    name = "tensor-misaligned"
    severity = Severity.NOTE
    reads = Part.SAFETENSORS

    def examine(self, checkpoint: Checkpoint) -> Iterator[Finding]:
        for file in readable(checkpoint):
            if not layout(file).contiguous:
                continue
            odd = [
                tensor
                for tensor in file.tensors.values()
                if tensor.bits >= 16 and tensor.begin % (tensor.bits // 8) and 0 not in tensor.shape
            ]
            if odd:
                begin = f"the bytes of {counted(len(odd), 'tensor')}"
                yield self.finding_in_file(
                    file.path,
                    f"{begin} begin at addresses that their element size does not divide: "
                    f"{listed([tensor.name for tensor in odd])}",
                    "load it and save it again: `save_file(load_file(path), path)` aligns them",
                    span=(odd[0].begin, odd[0].end),
                    evidence={
                        "expected": f"a multiple of {odd[0].bits // 8}",
                        "found": f"byte {odd[0].begin:,}",
                    },
                )
