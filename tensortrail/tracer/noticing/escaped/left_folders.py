"""A file with a relative name that is in a folder which the program has left."""

from __future__ import annotations

import os
from typing import Any

from tensortrail.tracer.identity.sites import Place
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import at, told

LEFT: list[tuple[str, Place | None]] = []
"""Each folder that was left, and the line at which."""
MOST = 20


def left_folder(error: BaseException, _: Storages) -> dict[str, Any] | None:
    name = error.filename if isinstance(error, FileNotFoundError) else None
    if not isinstance(name, str) or not name or os.path.isabs(name):
        return None
    for folder, line in LEFT[-MOST:]:
        if os.path.exists(os.path.join(folder, name)):
            where = at(*line[:2]) if line else ""
            return told(
                f"`{name}` is in {folder}, which was the working folder until the program "
                f"changed it{where}: a relative name is looked for in the folder of the moment",
                f"give its whole path before that: `os.path.abspath({_first(name)!r})`",
            )
    return None


def _first(name: str) -> str:
    return os.path.normpath(name).split(os.sep)[0]
