"""What a program has just written is judged once its writer has returned, if somebody asked for it.

Who judges is given from outside. Nothing the judge does reaches the program: what it raises, the
judgement says."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tensortrail.rules.timeline import Did

VERIFIED = "doctor.verified"
Judge = Callable[[str], Mapping[str, Any]]
"""From the path of a file or folder to plain values for the trail; `found` lists the findings."""


class WrittenCheckpoints:
    def __init__(self, recorder: Any, judge: Judge) -> None:
        self._recorder = recorder
        self._judge = judge
        self._local = threading.local()
        self._later: dict[str, tuple[int, Any]] = {}
        """Saves that go on after their call has returned: its line, and what is done at the end."""
        self._start()
        recorder.at_close.append(self._at_end)
        recorder.at_fork.append(self._start)

    def _start(self) -> None:
        self._later.clear()
        self._telling = threading.Lock()
        """A save is told once: by the thread that wrote it, or by the end of the recording."""
        self._ended = False

    @contextmanager
    def around(self, path: str, op: str) -> Iterator[None]:
        """A writer runs. Of writers within writers the outermost has written it all."""
        depth = getattr(self._local, "depth", 0)
        self._local.depth = depth + 1
        try:
            yield
        finally:
            self._local.depth = depth
        if not depth and path and os.path.exists(path) and not _another_rank_judges(path):
            self._is_written(path, op)

    def _is_written(self, path: str, op: str) -> None:
        told = self._judged(path)
        with self._telling:
            site, _ = self._later.pop(path, (0, None))
            if not self._ended:
                self._note(path, op, told, site)

    def begins(self, path: str, site: int) -> None:
        """A save may go on after its call has returned, and may end before: its line is known."""
        if path and not _another_rank_judges(path):
            self._later[path] = site, None

    def goes_on(self, path: str, future: Any) -> None:
        """The call has returned. What is still open is judged when its writer ends, or at the
        end of the recording; what has no future failed or wrote nothing."""
        with self._telling:
            site, _ = self._later.pop(path, (0, None))
            if site and future is not None:
                self._later[path] = site, future

    def _at_end(self) -> None:
        with self._telling:
            self._ended = True
            for path, (site, future) in self._later.items():
                self._note(path, "dcp.async_save", self._of_later(path, future), site)

    def _of_later(self, path: str, future: Any) -> Mapping[str, Any]:
        if future is None or not future.done():
            return {"problem": "it was still being written at the end"}
        if not os.path.exists(path):
            return {"problem": "it was not there any more at the end"}
        return self._judged(path)

    def _judged(self, path: str) -> Mapping[str, Any]:
        before = _state(path)
        try:
            found = self._judge(path)
        except Exception as error:
            return {"problem": f"the doctor failed: {type(error).__name__}: {error}"[:500]}
        if _state(path) != before:
            return {"problem": "it was changed while it was read"}
        return found

    def _note(self, path: str, op: str, told: Mapping[str, Any], site: int) -> None:
        count = len(told.get("found", ()))
        said = told.get("problem") or f"{count} finding{'s' * (count != 1)}"
        facts = {"said": f"{path}: {said}", "path": path, "writer": op, **told}

        def note(recorder: Any) -> None:
            if site:
                recorder.note_at(site, Did.HOOK, op=VERIFIED, facts=facts)
            else:
                recorder.note(Did.HOOK, op=VERIFIED, facts=facts)

        self._recorder.guarded(note)


def writing(recorder: Any, path: str, op: str) -> AbstractContextManager[None]:
    """Around a call that writes a checkpoint there. What a load writes is offloaded weights."""
    written = recorder.written
    if written is None or "load" in recorder.of_thread.phases:
        return nullcontext()
    return written.around(path, op)  # type: ignore[no-any-return]


def _another_rank_judges(path: str) -> bool:
    """A folder that all ranks write is judged by the first."""
    import torch.distributed as dist  # a run is read without torch

    ranks = dist.is_available() and dist.is_initialized()
    return ranks and dist.get_rank() != 0 and os.path.isdir(path)


def _state(path: str) -> Any:
    try:
        if os.path.isdir(path):
            with os.scandir(path) as found:
                return sorted((each.name, _of(each.stat(follow_symlinks=False))) for each in found)
        return _of(os.stat(path))
    except OSError:
        return None


def _of(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns
