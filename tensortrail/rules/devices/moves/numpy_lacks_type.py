from __future__ import annotations

import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Rule, Timeline
from tensortrail.rules.shared.refused_by_numpy import refused_by_numpy

REFUSED = re.compile(r"Got unsupported ScalarType (\w+)")
_TEXT = "convert it first: `.float().numpy()`"


class NumpyLacksType(Rule):
    """A tensor of a type that NumPy does not have is converted to a NumPy array.

    ## What it does
    In a recorded run, reports a `.numpy()` call that was refused, with the tensor's name and type.

    ## Why is this bad?
    The program ends. A model in bfloat16 or float8 returns tensors of that type, and NumPy has
    neither type.

    ## What you may see
    ```
    TypeError: Got unsupported ScalarType BFloat16
    ```

    ## Example
    ```python
    model = model.to(torch.bfloat16)
    features.append(model(x).cpu().numpy())
    ```
    Use instead:
    ```python
    model = model.to(torch.bfloat16)
    features.append(model(x).cpu().float().numpy())
    ```

    ## Fix safety
    Unsafe: the array has twice the bytes or more. The values are the same.

    ## References
    - pytorch documentation of `torch.Tensor.numpy`
    - pytorch issue 90574
    """

    code = "DEV615"
    name = "numpy-lacks-type"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        yield from refused_by_numpy(self, timeline, REFUSED, _said, ".float()", _TEXT)


def _said(of: str, refused: re.Match[str]) -> str:
    return f"NumPy has no {refused[1].lower()}, the type of {of}"
