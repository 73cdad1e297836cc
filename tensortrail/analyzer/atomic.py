"""Writing a file so that nobody ever sees half of it."""

from __future__ import annotations

import os
import shutil
import tempfile


def write(path: str, data: bytes) -> None:
    """Replace the file in one step; links stay links, and permissions stay as they are."""
    target = os.path.realpath(path)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".tensortrail-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        else:
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """There is no way to read it but to set it."""
    umask = os.umask(0)
    os.umask(umask)
    return umask
