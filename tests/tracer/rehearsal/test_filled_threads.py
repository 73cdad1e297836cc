"""Memory that was refused, while a collection may end what belongs to a thread."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, threading
from tensortrail.tracer.rehearsal.devices.filled_by import _in_variables

class Loop:
    def __init__(self):
        self.own, self.local = self, threading.local()
        self.local.value = 1

gc.freeze()
waits = threading.Event()
for _ in range(20):
    threading.Thread(target=waits.wait, daemon=True).start()
for after in range(1, 60):  # one of these begins a collection between two frames
    gc.collect()
    gc.set_threshold(after)
    Loop()
    _in_variables()
print("through")
"""


def test_threads_are_asked_without_a_collection() -> None:
    """Python holds a lock while it lists the frames of its threads, and takes it again to end a
    `threading.local`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "through\n", done.stderr
