"""A check from paths to findings: discover, look into the cache, judge the rest, collect."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tensortrail import __version__
from tensortrail.analyzer.choosing.request import CheckRequest, CheckResult, FileResult, Progress
from tensortrail.analyzer.judging.cache import Cache, fingerprint
from tensortrail.analyzer.reading.discover import discover, matches
from tensortrail.analyzer.reading.python_files import python_of
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.collector import without_collector

if TYPE_CHECKING:
    from tensortrail.analyzer.facts.answers import Answer
    from tensortrail.analyzer.judging.judge import Judge
    from tensortrail.findings import Finding


def check(request: CheckRequest, progress: Progress | None = None) -> CheckResult:
    if request.stdin is not None:
        return _check_buffer(request, *request.stdin)
    found = discover(request.paths, request.exclude, request.respect_gitignore)
    if found.missing:
        return CheckResult(missing=tuple(found.missing), problems=tuple(found.problems))
    files = _only(request, found.files)
    texts = Texts()
    judge = functools.cache(lambda: _judge(request, texts, cache.told.answer))
    cache = Cache(request.cache_dir, request.root, _fingerprint(request), lambda: judge().project)
    results = _results(request, files, cache, progress, texts, judge)
    new, known = _split(request, [each for result in results for each in result.findings])
    try:
        told = _with_siblings(request, new, found.files, texts, cache)
    finally:
        cache.save()
    problems = [*found.problems, *filter(None, [cache.problem])]
    return CheckResult(
        told,
        tuple(known),
        tuple(files),
        tuple(dict.fromkeys(problems)),
        outside=tuple(found.outside),
        pointers=tuple(found.pointers),
        left_out=tuple(found.left_out),
        digests={each.path: each.digest for each in results if each.digest},
        quiet=_quiet(request, results),
    )


class Checker:
    """Gives the findings of a name and its program, again and again, whatever the disk holds."""

    def __init__(self, request: CheckRequest) -> None:
        from tensortrail.analyzer.judging.judge import Judge

        self._request = request
        self._judge = Judge(request)

    def __call__(self, name: str, data: bytes) -> Sequence[Finding]:
        """`data` is Python, for a notebook the program that its cells come to."""
        judge = self._judge
        with without_collector():
            judge.forget(name)
            found = judge.file(name, data, judge.chosen.rules_for(data)).findings
        return _split(self._request, found)[0]

    def forget(self, path: str) -> None:
        """The file has changed; what was learned of it holds no more."""
        self._judge.forget(path)


def ignored(request: CheckRequest, finding: Finding) -> bool:
    """Whether the configuration wants no such finding in this file."""
    return _is_ignored(request, finding.site.file, finding.code)


def _is_ignored(request: CheckRequest, path: str, code: str) -> bool:
    if not request.per_file_ignores:
        return False
    relative = os.path.relpath(path, request.root).replace(os.sep, "/")
    return any(
        code in codes and matches(relative, pattern)
        for pattern, codes in request.per_file_ignores.items()
    )


def _quiet(request: CheckRequest, results: Iterable[FileResult]) -> int:
    return sum(not _is_ignored(request, each.path, code) for each in results for code in each.quiet)


def _check_buffer(request: CheckRequest, name: str, data: bytes) -> CheckResult:
    from tensortrail.analyzer.choosing.own_findings import unreadable
    from tensortrail.analyzer.reading.source import Unreadable

    try:
        found = Checker(request)(name, python_of(name, data))
    except Unreadable as error:
        found = unreadable(name, error).findings
    return CheckResult(tuple(found), files=(name,))


def _only(request: CheckRequest, files: list[str]) -> list[str]:
    if request.only is None:
        return files
    return [each for each in files if os.path.realpath(each) in request.only]


def _fingerprint(request: CheckRequest) -> str:
    selected = [
        sorted(each) if each is not None else None for each in (request.codes, request.noted)
    ]
    return fingerprint(
        __version__, selected, request.report_unused, request.use_triggers, request.syntax
    )


def _results(
    request: CheckRequest,
    files: Sequence[str],
    cache: Cache,
    progress: Progress | None,
    texts: Texts,
    judge: Callable[[], Judge],
) -> list[FileResult]:
    """What is known of each file: from the cache where it has not changed, else judged now."""
    changed, results = _known(files, cache)
    new = [each for each in changed if not cache.knows(each)]
    if new and len(new) < len(files):
        _drop_importers(new, files, results, cache, texts)
        changed, results = _known(files, cache)
    elif changed and not new:  # a new file may change what others mean by a name
        cache.told.prepare()
    if changed and cache.rests_on_absence():
        cache.drop_those_without(_words(changed, texts))
        changed, results = _known(files, cache)
    if changed:
        from tensortrail.analyzer.judging.jobs import judge_files

        for result in judge_files(request, changed, progress, texts, judge):
            cache.put(result)
            results.append(result)
    return results


def _known(files: Sequence[str], cache: Cache) -> tuple[list[str], list[FileResult]]:
    """The files that have to be judged, and what was found in the others."""
    known = [(path, cache.get(path)) for path in files]
    changed = [path for path, result in known if result is None]
    return changed, [each for _, each in known if each]


def _drop_importers(
    new: Sequence[str],
    files: Sequence[str],
    results: Sequence[FileResult],
    cache: Cache,
    texts: Texts,
) -> None:
    """What imports a new file may mean something else by a name now, and so may who asked it."""
    from tensortrail.analyzer.facts.texts.programs import Importers

    known: dict[str, bytes] = {}
    for path in files:
        with suppress(OSError):
            known[path] = texts.of(path)
    importers = Importers(known)
    importing = {each for path in new for each in importers.of(path)}
    cache.drop(importing)
    cache.drop(each.path for each in results if not importing.isdisjoint(each.needs))


def _words(paths: Iterable[str], texts: Texts) -> set[str]:
    """Of files that are to be judged, comments and texts in them among the rest."""
    found: set[bytes] = set()
    for path in paths:
        with suppress(OSError):
            found.update(re.findall(rb"\w+", texts.of(path)))
    return {each.decode(errors="replace") for each in found}


def _with_siblings(
    request: CheckRequest,
    findings: Sequence[Finding],
    files: Sequence[str],
    texts: Texts,
    cache: Cache,
) -> tuple[Finding, ...]:
    if not findings or not request.siblings:
        return tuple(findings)
    from tensortrail.analyzer.judging.shapes_seen import ShapesSeen
    from tensortrail.analyzer.judging.sibling_search import SiblingSearch
    from tensortrail.analyzer.judging.siblings import with_siblings

    seen = ShapesSeen(cache, files)
    with without_collector():
        told = with_siblings(findings, SiblingSearch(files, texts, seen))
    seen.save()
    return tuple(told)


def _judge(
    request: CheckRequest, texts: Texts, told_before: Callable[[str, str], Answer | None]
) -> Judge:
    """Imported where a file has to be judged: most checks of a few files find none that has."""
    from tensortrail.analyzer.judging.judge import Judge

    judge = Judge(request, texts)
    judge.project.answers.told_before = told_before
    return judge


def _split(
    request: CheckRequest, findings: Sequence[Finding]
) -> tuple[Sequence[Finding], Sequence[Finding]]:
    """What is to be reported, in order, and what the baseline holds."""
    kept = [each for each in findings if not ignored(request, each)]
    kept.sort(key=lambda each: each.sort_key)
    return request.baseline.split(kept) if request.baseline else (kept, ())
