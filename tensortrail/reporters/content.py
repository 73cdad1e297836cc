"""What tells findings apart from one run to the next: the code they are about, not its line."""

from __future__ import annotations

import hashlib
import os
from collections import Counter

from tensortrail.findings import Finding


class Fingerprints:
    """The same for the same line wherever it moves; the n-th of several alike stays the n-th."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, finding: Finding, file: str) -> str:
        key = f"{file}:{finding.content}"
        digest = hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:24]
        self._seen[digest] += 1
        return f"{digest}:{self._seen[digest]}"


def path_from_here(file: str) -> str:
    """As readers of a whole repository expect it: from the folder the command ran in, with `/`."""
    here = os.path.join(os.getcwd(), "")
    absolute = os.path.abspath(file)
    below = absolute[len(here) :] if absolute.startswith(here) else file
    return below.replace(os.sep, "/")
