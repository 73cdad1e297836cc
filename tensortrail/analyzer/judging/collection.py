"""Garbage collection is put off while files are judged."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Trees are many objects, and none of them needs a collection to die."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.freeze()  # what was made meanwhile counts as old: nobody goes through it now
            gc.unfreeze()
            gc.enable()
