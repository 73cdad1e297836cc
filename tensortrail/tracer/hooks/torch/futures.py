"""A task in a pool of threads or processes that failed, and whose result nobody read.

Its future keeps the exception. It is told when the future is given up, or at the end of the run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from weakref import WeakSet

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.errors_behind import is_failure
from tensortrail.tracer.noticing.lines_of_errors import last_line
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "concurrent.futures._base"
UNREAD = "a task whose result nobody read"
KEPT = "_tensortrail_unread"


class Unread:
    """Lives as long as the future, which holds the same exception: it keeps nothing alive."""

    def __init__(self, recorder: Recorder, error: BaseException) -> None:
        self._recorder = recorder
        self._error: BaseException | None = error

    def read(self) -> None:
        self._error = None

    def tell(self) -> None:
        error, self._error = self._error, None
        if error is not None and self._recorder.active:
            self._recorder.guarded(lambda of: of.part_ended(error, UNREAD))

    __del__ = tell


def install(recorder: Recorder, patches: Patches) -> None:
    waiting: WeakSet[Unread] = WeakSet()

    def failed(original: Any, future: Future[Any], error: Any) -> Any:
        if is_failure(error) and last_line(error) is not None:
            unread = Unread(recorder, error)
            waiting.add(unread)
            setattr(future, KEPT, unread)
        return original(future, error)

    patches.wrap(Future, "set_exception", failed)
    for name in ("result", "exception"):
        patches.wrap(Future, name, _reads, at_any_time=True)
    recorder.at_close.append(lambda: _each(waiting, Unread.tell))
    recorder.at_fork.append(lambda: _each(waiting, Unread.read))


def _reads(original: Any, future: Future[Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return original(future, *args, **kwargs)
    finally:
        unread = vars(future).get(KEPT)
        if unread is not None and future.done():
            unread.read()


def _each(waiting: WeakSet[Unread], does: Callable[[Unread], None]) -> None:
    for unread in list(waiting):
        does(unread)
