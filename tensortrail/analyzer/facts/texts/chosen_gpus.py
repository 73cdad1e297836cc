"""Which GPU a text chooses: another than the first by its number, the current one, or none."""

from __future__ import annotations

import re

from tensortrail.patterns import pattern

_NUMBERED_GPU = pattern(
    rb"^[^#\n]*(?:['\"]cuda:(?:[1-9{%]|['\"]\s*[+%])|\bdevice\(['\"]cuda['\"],)", re.MULTILINE
)
"""Another GPU than the first, or one of which a variable has the number."""
SETS_GPU = pattern(
    rb"(?:\A|^(?![^\n]*\bcurrent_device\(\) !=)[^\n]*\n)[^#\n]*\bcuda\.set_device\("
    rb"|^[ \t]*from torch\.cuda import [^#\n]*\bset_device\b",
    re.MULTILINE,
)
"""A process chooses its GPU. Who asks first whether another one is current follows a tensor."""
NAMES_ACCELERATOR = pattern(
    rb"^[^#\n]*\b(?:(?:cuda|mps|xpu|hpu|npu)\b|(?:Accelerator|Trainer)\()", re.MULTILINE
)
"""Where something may be put on a GPU: its type, or what of libraries moves a model."""
CHOOSES_CPU = pattern(
    rb"else\s*\(?\s*(?:[\w.]+\()?['\"]cpu['\"]|\b(?:no|use)[-_](?:cuda|gpu)\b|['\"]--?device\b"
    rb"|(?<!map_location=torch\.)\bdevice\(['\"]cpu['\"]|^\s*[\w.]*device\s*=\s*['\"]cpu['\"]\s*$"
    rb"|default=['\"]cpu['\"]|if\s+(?:[\w.]+\s+and\s+)?(?:torch\.)?cuda\.is_available\(\)",
    re.MULTILINE,
)
"""Where a program leaves it open whether there is a GPU, or lets who runs it choose."""
FOLLOWS_TENSOR = pattern(rb"^[^#\n]*\bcuda\.device_of\(", re.MULTILINE)
"""The GPU of a tensor is made the current one: for a kernel, as torch does so itself."""
LAUNCHES_BY_TENSOR = pattern(
    rb"^[ \t]*with [^\n#]*\bdevice\([^)\n]*\.device\b[^\n]*\n(?:[^\n]*\n){0,4}?"
    rb"[^\n#]*\w\[[^\]\n]*\]\(",
    re.MULTILINE,
)
"""The same before `kernel[grid](...)`."""
OTHER_BACKEND = pattern(rb"['\"](?:gloo|mpi)['\"]")


def numbered_gpu(text: bytes) -> int:
    """The line that names another GPU than the first; 0 if none does."""
    found = _NUMBERED_GPU.search(text) if b"cuda" in text else None
    return text.count(b"\n", 0, found.end()) + 1 if found is not None else 0
