"""Python's collector of garbage is put off while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Rows and syntax trees are many objects, and hardly any needs a collection to die: looking for
    some takes half of the time. Those that do stay young: counted as old, they pile up in a process
    that goes on."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def made_to_stay() -> Iterator[None]:
    """What was made meanwhile is as old as the rest afterwards: it is not gone through at once."""
    if not gc.isenabled() or gc.get_freeze_count():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()
        gc.enable()
