"""The header of a trail file, of which everything but the keys may be damaged or hostile."""

from __future__ import annotations

import math
from typing import Any

LONGEST_LABEL = 200
LEFT = "left"
"""What a process notes of the children that end with it."""
TEXTS = ("version", "run", "cwd", "python", "torch", "thread", "worker", "host", "visible")
NUMBERS = ("pid", "rank", "local_rank", "parent", "limit", "first_storage")


def header_of(note: dict[Any, Any]) -> dict[str, Any]:
    """Readers need not look at the types of what it holds."""
    header = {str(key): value for key, value in note.items()}
    for key in TEXTS:
        if key in header:
            header[key] = str(header[key])[:LONGEST_LABEL]
    for key in NUMBERS:
        if type(header.get(key, 0)) is not int:
            header[key] = None
    start = header.get("start")
    is_time = isinstance(start, (int, float)) and math.isfinite(start) and 0 <= start < 1e11
    header["start"] = start if is_time else 0.0
    argv = header.get("argv")
    header["argv"] = [str(each) for each in argv] if isinstance(argv, tuple) else []
    return header
