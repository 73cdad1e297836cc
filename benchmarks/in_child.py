"""Work in a process of its own, which may take too long or end it."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from typing import Any


def in_child(work: Callable[[], Any], seconds: int, quiet: bool = False) -> Any:
    """What the work gives in a process of its own; None if it raises or takes too long."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        signal.alarm(seconds)
        if quiet:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
        with os.fdopen(write, "wb") as pipe:
            try:
                pipe.write(pickle.dumps(work()))
            except BaseException:  # also an exit
                pipe.write(pickle.dumps(None))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None
