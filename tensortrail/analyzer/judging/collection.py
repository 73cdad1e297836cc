"""Garbage collection is put off while files are judged."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def put_off() -> Iterator[None]:
    """Trees are many objects, and hardly any needs a collection to die. Those that do stay young:
    counted as old, they pile up in a process that checks again and again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
