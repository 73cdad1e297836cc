"""Each thread that is started gets something to do at its beginning and its end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any


def start_between(
    original: Any,
    thread: threading.Thread,
    begin: Callable[[], Any],
    end: Callable[[], Any],
    cleaned: Callable[[BaseException | None], None],
) -> Any:
    """Start the thread with `original`; its work is done between the two. What ends it is shown
    after `cleaned`, as it is without a recording."""
    run, own = thread.run, vars(thread).get("run")
    _show_after(cleaned, thread)

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


def _show_after(cleaned: Callable[[BaseException | None], None], thread: threading.Thread) -> None:
    show = vars(thread).get("_invoke_excepthook")
    if show is None:
        return

    def show_cleaned(ended: threading.Thread) -> None:
        cleaned(sys.exc_info()[1])
        show(ended)

    vars(thread)["_invoke_excepthook"] = show_cleaned
