"""Judges many files: here, or in other processes where that pays."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tensortrail.analyzer.choosing.chosen import Chosen
from tensortrail.analyzer.choosing.request import CheckRequest, FileResult, Progress
from tensortrail.analyzer.reading.python_files import is_notebook, python_of
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.analyzer.reading.unreadable import Unreadable
from tensortrail.collector import without_collector

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

    from tensortrail.analyzer.judging.judge import Judge

_WORTH_PROCESSES = 4_000_000
"""Bytes to be judged, beside those of the largest file, from which other processes pay."""
_CHUNKS_PER_JOB = 4
_MOST_PER_PROCESSOR = 4
"""Processes: the number may come from a checkout's configuration."""


class _Job(NamedTuple):
    """A file to be judged. Its text is asked for again then: that of all files of a large tree
    would take more memory than their trees."""

    path: str
    size: int
    codes: Sequence[str]
    """Of the rules that look at it. Those of other packages may not survive the way to another
    process: there they are looked up again."""
    program: bytes | None = None
    """Of a notebook, which takes long to read and is mostly outputs."""


def _looked_at(path: str, texts: Texts, chosen: Chosen, request: CheckRequest) -> _Job | FileResult:
    """What has to be judged, or what is known of the file without that."""
    data = _read(path, texts)
    if isinstance(data, FileResult):
        return data
    if b"\0" in data:
        return _no_source(path, data)
    rules = chosen.rules_for(data)
    if not (rules or request.syntax or _may_suppress(data) or is_notebook(path)):
        return FileResult(path)
    codes = [each.code for each in rules]
    return _Job(path, len(data), codes, data if is_notebook(path) else None)


def judge_files(
    request: CheckRequest,
    paths: Sequence[str],
    progress: Progress | None,
    texts: Texts,
    judge: Callable[[], Judge],
) -> list[FileResult]:
    """A file without any rule's trigger words is clean without being parsed."""
    chosen = Chosen(request)
    done: list[FileResult] = []
    todo: list[_Job] = []
    for number, path in enumerate(paths):
        if progress is not None and number % 64 == 0:
            progress(number, len(paths))
        looked_at = _looked_at(path, texts, chosen, request)
        if isinstance(looked_at, _Job):
            todo.append(looked_at)
        else:
            done.append(looked_at)

    def tick(count: int) -> None:
        if progress is not None:
            progress(len(done) + count, len(paths))

    jobs = _jobs(request)
    if jobs > 1 and _besides_the_largest(todo) > _WORTH_PROCESSES:
        return done + _in_processes(request, todo, jobs, tick)
    return done + (_here(judge(), todo, tick, texts) if todo else [])


def _read(path: str, texts: Texts) -> bytes | FileResult:
    """The Python of a file, or why there is none."""
    try:
        return python_of(path, texts.of(path))
    except (OSError, Unreadable) as error:
        from tensortrail.analyzer.choosing.own_findings import unopened, unreadable

        return unopened(path, error) if isinstance(error, OSError) else unreadable(path, error)


def _no_source(path: str, data: bytes) -> FileResult:
    from tensortrail.analyzer.choosing.own_findings import WORD, unreadable
    from tensortrail.analyzer.reading.binary import why_no_source, without_zeros

    return unreadable(path, why_no_source(data), apart=WORD not in without_zeros(data))


def _jobs(request: CheckRequest) -> int:
    processors = os.cpu_count() or 1
    if not request.jobs:
        return 1 if "PRE_COMMIT" in os.environ else processors
    return min(request.jobs, _MOST_PER_PROCESSOR * processors)


def _besides_the_largest(todo: Sequence[_Job]) -> int:
    sizes = [each.size for each in todo]
    return sum(sizes) - max(sizes, default=0)


def _may_suppress(data: bytes) -> bool:
    """A comment of ours may suppress nothing: that is worth a look even without a trigger."""
    return b"tensortrail: ignore" in data


def _here(
    judge: Judge, todo: Sequence[_Job], tick: Callable[[int], None], texts: Texts
) -> list[FileResult]:
    results = []
    with without_collector():
        for job in todo:
            results.append(_judged(judge, job, texts))
            tick(len(results))
    if results:
        answers = judge.project.answers
        results[-1] = results[-1]._replace(asked=answers.taken(), told=answers.told())
    return results


def _judged(judge: Judge, job: _Job, texts: Texts) -> FileResult:
    data = _read(job.path, texts) if job.program is None else job.program
    if isinstance(data, FileResult):
        return data
    return judge.file(job.path, data, judge.chosen.coded(job.codes))


def _in_processes(
    request: CheckRequest,
    todo: Sequence[_Job],
    jobs: int,
    tick: Callable[[int], None],
) -> list[FileResult]:
    from concurrent.futures.process import BrokenProcessPool

    size = max(1, len(todo) // (jobs * _CHUNKS_PER_JOB))
    chunks = [todo[start : start + size] for start in range(0, len(todo), size)]
    results: list[FileResult] = []
    lost: list[_Job] = []
    with _pool(jobs) as pool:
        futures = [pool.submit(_chunk, request, _sent(chunk)) for chunk in chunks]
        for chunk, future in zip(chunks, futures, strict=True):
            try:
                results += future.result()
            except BrokenProcessPool:  # a process died, and took the others' work along
                lost += chunk
            tick(len(results))
    return results + _one_by_one(request, lost)


def _one_by_one(request: CheckRequest, todo: Sequence[_Job]) -> list[FileResult]:
    """A file that ends the process which judges it costs no other file its findings."""
    from concurrent.futures.process import BrokenProcessPool

    from tensortrail.analyzer.choosing.own_findings import ended

    results: list[FileResult] = []
    rest = deque(todo)
    while rest:
        with _pool(1) as pool:
            try:
                while rest:
                    job = rest.popleft()
                    results += pool.submit(_chunk, request, _sent([job])).result()
            except BrokenProcessPool:
                results.append(ended(job.path))
    return results


def _pool(jobs: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    fresh = get_context("spawn")  # a fork of a process with threads may hang
    return ProcessPoolExecutor(max_workers=jobs, mp_context=fresh)


def _sent(chunk: Sequence[_Job]) -> list[_Job]:
    """Without programs, which are read again over there."""
    return [job._replace(program=None) for job in chunk]


def _chunk(request: CheckRequest, todo: Sequence[_Job]) -> list[FileResult]:
    """Runs in another process; one Judge lives there for all its chunks."""
    from tensortrail.analyzer.judging.judge import Judge

    key = repr(request._replace(baseline=None, profile=None))
    if key not in _judges:
        _judges[key] = Judge(request)
    return _here(_judges[key], todo, lambda count: None, Texts())


_judges: dict[str, Judge] = {}
