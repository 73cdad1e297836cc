"""Each thread that is started gets something to do at its beginning and its end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def start_between(
    original: Any, thread: threading.Thread, begin: Callable[[], Any], end: Callable[[], Any]
) -> Any:
    """Start the thread with `original`; its work is done between the two."""
    run, own = thread.run, vars(thread).get("run")

    def as_it_was() -> None:
        vars(thread).pop("run", None)
        if own is not None:
            thread.run = own  # type: ignore[method-assign]

    def run_between() -> None:
        as_it_was()
        begin()
        try:
            run()
        finally:
            end()

    thread.run = run_between  # type: ignore[method-assign]
    try:
        return original(thread)
    except BaseException:
        as_it_was()
        raise
