"""A check from paths to findings: discover, look into the cache, filter, judge, suppress."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensortrail import __version__
from tensortrail.analyzer.cache import Cache, fingerprint
from tensortrail.analyzer.discover import discover, matches
from tensortrail.analyzer.request import CheckRequest, CheckResult, Progress

if TYPE_CHECKING:
    from tensortrail.analyzer.project import Project
    from tensortrail.findings import Finding
    from tensortrail.rules import Rule

_WORTH_PROCESSES = 4_000_000
"""Bytes to be judged from which starting other processes pays."""
_CHUNKS_PER_JOB = 4


def check(request: CheckRequest, progress: Progress | None = None) -> CheckResult:
    if request.stdin is not None:
        return _check_buffer(request, *request.stdin)
    found = discover(request.paths, request.exclude, request.respect_gitignore)
    if found.missing:
        return CheckResult(missing=tuple(found.missing), problems=tuple(found.problems))
    selected = sorted(request.codes) if request.codes is not None else None
    cache = Cache(
        request.cache_dir,
        fingerprint(__version__, selected, request.report_unused, request.use_triggers),
    )
    results: dict[str, Sequence[Mapping[str, Any]]] = {}
    todo: list[str] = []
    for path in found.files:
        cached = cache.get(path)
        if cached is None:
            todo.append(path)
        elif cached:
            results[path] = cached
    if todo:
        for judged in _judge_all(request, todo, progress):
            cache.put(judged.path, judged.findings, judged.needs)
            if judged.findings:
                results[judged.path] = judged.findings
    cache.save(found.files)
    findings = _collect(request, results, found.files) if results else ()
    return CheckResult(findings, tuple(found.files), tuple(found.problems))


@dataclass(frozen=True)
class Judged:
    """One file's findings as plain data: cheap to send between processes and to store."""

    path: str
    findings: Sequence[Mapping[str, Any]]
    needs: tuple[str, ...] = ()


class Judge:
    """Judges files one after another, keeping what it learned of the project."""

    def __init__(self, request: CheckRequest) -> None:
        from tensortrail.analyzer.own import OWN
        from tensortrail.analyzer.project import Project
        from tensortrail.analyzer.triggers import Triggers
        from tensortrail.rules import all_rules

        rules = all_rules()
        self._request = request
        self._selected = [
            rule
            for code, rule in rules.items()
            if (rule.default if request.codes is None else code in request.codes)
        ]
        self._codes = rules.keys() | OWN.keys()
        self._of_runs = {code for code, rule in rules.items() if rule.watches_runs()}
        self._triggers = Triggers(self._selected)
        self.project: Project = Project()

    def rules_for(self, data: bytes) -> list[type[Rule]]:
        return self._triggers.rules_for(data) if self._request.use_triggers else self._selected

    def file(self, path: str, data: bytes, rules: Sequence[type[Rule]]) -> Judged:
        from tensortrail.analyzer.codec import to_data

        findings, needs = self.findings(path, data, rules)
        return Judged(path, [to_data(each) for each in findings], needs)

    def findings(
        self, path: str, data: bytes, rules: Sequence[type[Rule]]
    ) -> tuple[list[Finding], tuple[str, ...]]:
        from tensortrail.analyzer.judge import Unreadable, judge
        from tensortrail.analyzer.own import CRASHED, UNREADABLE, own_finding
        from tensortrail.analyzer.source import Source
        from tensortrail.analyzer.suppress import apply_suppressions
        from tensortrail.findings import Site

        def crashed(rule: Rule, error: Exception) -> Finding:
            what = f"{rule.code} failed here: {type(error).__name__}: {error}"
            return own_finding(CRASHED, what, Site(path, 1))

        try:
            judgement = judge(path, data, [rule() for rule in rules], self.project, crashed)
            source = Source(path, data)
        except Unreadable as error:
            site = Site(path, error.line, error.column)
            return [own_finding(UNREADABLE, str(error), site)], ()
        kept = apply_suppressions(
            judgement.findings,
            data,
            source,
            self._codes,
            self._request.report_unused,
            self._of_runs,
        )
        return kept, judgement.depends_on


def _judge_all(
    request: CheckRequest, paths: Sequence[str], progress: Progress | None
) -> Sequence[Judged]:
    judge = Judge(request)
    judged: list[Judged] = []
    survivors: list[tuple[str, bytes, list[type[Rule]]]] = []
    size = 0
    for number, path in enumerate(paths):
        if progress is not None and number % 64 == 0:
            progress(number, len(paths))
        try:
            with open(path, "rb") as handle:
                data = handle.read()
        except OSError as error:
            judged.append(_unopened(path, error))
            continue
        rules = judge.rules_for(data)
        if rules or _may_suppress(data):
            survivors.append((path, data, rules))
            size += len(data)
        else:
            judged.append(Judged(path, ()))
    jobs = request.jobs or (1 if "PRE_COMMIT" in os.environ else os.cpu_count() or 1)
    done = len(judged)

    def tick(count: int) -> None:
        if progress is not None:
            progress(done + count, len(paths))

    if jobs > 1 and size > _WORTH_PROCESSES:
        return judged + _in_processes(request, judge, survivors, jobs, tick)
    return judged + _here(judge, survivors, tick)


def _here(
    judge: Judge,
    survivors: Sequence[tuple[str, bytes, list[type[Rule]]]],
    tick: Callable[[int], None],
) -> list[Judged]:
    collecting = gc.isenabled()
    gc.disable()  # trees are many objects, and none of them need it to die
    try:
        judged = []
        for path, data, rules in survivors:
            judged.append(judge.file(path, data, rules))
            tick(len(judged))
        return judged
    finally:
        if collecting:
            gc.enable()


def _in_processes(
    request: CheckRequest,
    judge: Judge,
    survivors: Sequence[tuple[str, bytes, list[type[Rule]]]],
    jobs: int,
    tick: Callable[[int], None],
) -> list[Judged]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    size = max(1, len(survivors) // (jobs * _CHUNKS_PER_JOB))
    chunks = [survivors[start : start + size] for start in range(0, len(survivors), size)]
    judged: list[Judged] = []
    fresh = get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(max_workers=jobs, mp_context=fresh) as pool:
        futures = [pool.submit(_chunk, request, [path for path, _, _ in each]) for each in chunks]
        for chunk, future in zip(chunks, futures, strict=True):
            try:
                judged += future.result()
            except BrokenProcessPool:  # a worker died: its files are done here
                judged += _here(judge, chunk, lambda count: None)
            tick(len(judged))
    return judged


def _chunk(request: CheckRequest, paths: Sequence[str]) -> list[Judged]:
    """Runs in another process; one Judge lives there for all its chunks."""
    key = repr(request)
    if key not in _workers:
        _workers[key] = Judge(request)
    judge = _workers[key]
    survivors = []
    judged = []
    for path in paths:
        try:
            with open(path, "rb") as handle:
                data = handle.read()
        except OSError as error:
            judged.append(_unopened(path, error))
            continue
        survivors.append((path, data, judge.rules_for(data)))
    return judged + _here(judge, survivors, lambda count: None)


_workers: dict[str, Judge] = {}


def _check_buffer(request: CheckRequest, name: str, data: bytes) -> CheckResult:
    judge = Judge(request)
    findings, _ = judge.findings(name, data, judge.rules_for(data))
    kept = [each for each in findings if not ignored(request, each)]
    return CheckResult(tuple(sorted(kept, key=lambda each: each.sort_key)), (name,))


def _collect(
    request: CheckRequest,
    results: Mapping[str, Sequence[Mapping[str, Any]]],
    files: Sequence[str],
) -> tuple[Finding, ...]:
    from tensortrail.analyzer.codec import from_data

    findings = [from_data(each) for found in results.values() for each in found]
    findings = [each for each in findings if not ignored(request, each)]
    findings.sort(key=lambda each: each.sort_key)
    if request.siblings:
        from tensortrail.analyzer.siblings import with_siblings

        findings = with_siblings(findings, files)
    return tuple(findings)


def ignored(request: CheckRequest, finding: Finding) -> bool:
    if not request.per_file_ignores:
        return False
    relative = os.path.relpath(finding.site.file, request.root).replace(os.sep, "/")
    return any(
        finding.code in codes and matches(relative, pattern)
        for pattern, codes in request.per_file_ignores.items()
    )


def _may_suppress(data: bytes) -> bool:
    """A comment of ours may suppress nothing: that is worth a look even without a trigger."""
    return b"tensortrail: ignore" in data


def _unopened(path: str, error: OSError) -> Judged:
    from tensortrail.analyzer.codec import to_data
    from tensortrail.analyzer.own import UNREADABLE, own_finding
    from tensortrail.findings import Site

    message = f"cannot be opened: {error.strerror or error}"
    return Judged(path, [to_data(own_finding(UNREADABLE, message, Site(path, 1)))])
