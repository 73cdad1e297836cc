"""Code that shows why it matters to which device a file is loaded."""

from __future__ import annotations

import re

_DEF = re.compile(r"^( *)(def [^\n]*:)\n", re.MULTILINE)


def runs_without_a_gpu(source: str) -> str:
    """The same, but every function asks whether there is a GPU."""
    return _DEF.sub(r"\1\2\n\1    fast = torch.cuda.is_available()\n", source)
