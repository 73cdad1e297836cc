"""Exceptions that signal handlers raise belong to the program, wherever they strike."""

from __future__ import annotations

import signal


def let_through(error: Exception) -> None:
    """Raise it again if a signal handler of the program raised it."""
    codes = {
        getattr(getattr(handler, "func", handler), "__code__", None)
        for number in signal.valid_signals()
        if callable(handler := signal.getsignal(number))
    } - {None}
    traceback = error.__traceback__ if codes else None
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            raise error
        traceback = traceback.tb_next
