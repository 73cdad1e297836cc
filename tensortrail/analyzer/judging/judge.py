"""Judges one file: source in, findings out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tensortrail.analyzer.choosing.chosen import LARGEST, Chosen
from tensortrail.analyzer.choosing.own_findings import (
    CRASHED,
    IN_PART,
    OWN,
    UNREADABLE,
    WORD,
    only,
    own_finding,
    unreadable,
)
from tensortrail.analyzer.choosing.request import CheckRequest, FileResult, digest_of
from tensortrail.analyzer.choosing.rule_index import Listed, listed
from tensortrail.analyzer.facts.all_of import all_of
from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.analyzer.judging.suppress import apply_suppressions
from tensortrail.analyzer.reading.limits import MOST_SECONDS, TooMuch
from tensortrail.analyzer.reading.parsing import parsed
from tensortrail.analyzer.reading.python_files import is_notebook
from tensortrail.analyzer.reading.source import Unreadable
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.findings import Finding, Severity, Site, severest
from tensortrail.rules import Rule
from tensortrail.rules.explained import Weigh, without_explained

NOTE = Severity.NOTE
OnCrash = Callable[[Rule, Exception], Finding]
"""What to report of a rule that raises."""


class Judge:
    """Judges files one after another, keeping what it learned of the project."""

    def __init__(self, request: CheckRequest, texts: Texts | None = None) -> None:
        """`texts` are those of a check in which no file changes."""
        rules = listed()
        self._request = request
        self._wants_notes = request.wants_notes
        self.chosen = Chosen(request)
        self._codes = rules.keys() | OWN.keys()
        self._of_runs = {code for code, rule in rules.items() if rule.watches_runs}
        self.project = open_project(self.chosen.words, texts)
        self.project.answers.wanted = request.cache_dir is not None

    def forget(self, path: str) -> None:
        """The file is about to change."""
        self.project.forget(path)

    def file(self, path: str, data: bytes, rules: Sequence[Listed]) -> FileResult:
        """Whatever the file holds, it costs no other file its findings."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the compiler's, about the code that is read
                return _with_broken_cells(self._judged(path, data, rules), data)
        except Unreadable as error:
            return unreadable(path, error, apart=not self._request.syntax and WORD not in data)
        except TooMuch as why:
            return only(IN_PART, f"{why}, so it was not checked", Site(path, 1))
        except (RecursionError, MemoryError):
            return only(UNREADABLE, "nested too deeply to be judged", Site(path, 1))
        except Exception as error:
            what = f"this file could not be judged: {type(error).__name__}: {error}"
            return only(CRASHED, what, Site(path, 1))

    def _judged(self, path: str, data: bytes, rules: Sequence[Listed]) -> FileResult:
        if len(data) > LARGEST:
            raise Unreadable(f"larger than {LARGEST // 1_000_000} MB: not judged")
        if self._request.syntax:
            parsed(data)
        self.project.trim()
        self.project.limit.begin(MOST_SECONDS)
        module = PythonModule(path, data, self.project)
        profile = self._request.profile
        findings_of = profile.findings if profile else _findings_of
        made = [rule.load()() for rule in rules]
        silent = {each.code for each in made if not (each.notes or self._wants_notes(each.code))}
        found = _found(module, made, _crashed(path), findings_of, silent)
        unused = self._request.report_unused and not self.project.limit.notes
        kept = apply_suppressions(
            found, module.source, self._codes, unused, self._of_runs, module.kept
        )
        loud = [each for each in kept if _is_loud(each, silent)]
        told = tuple(_as_reported(loud, made))
        digest = digest_of(data) if told else ""
        quiet = tuple(each.code for each in kept if not _is_loud(each, silent))
        return FileResult(path, told, _needs(module), digest, absent=_absent(module), quiet=quiet)


def _is_loud(finding: Finding, silent: Container[str]) -> bool:
    return finding.severity is not NOTE or finding.told or finding.code not in silent


def _as_reported(found: Iterable[Finding], rules: Iterable[Rule]) -> Iterator[Finding]:
    """What a rule is sure of is reported all the same where its warnings are notes, and what stands
    for another finding as that one would be."""
    weigh = _weigh_by(rules)
    for each in found:
        severity = severest(weigh(each), each.at_least)
        yield each if severity is each.severity else replace(each, severity=severity)


def _weigh_by(rules: Iterable[Rule]) -> Weigh:
    """How severe a finding of one of the rules is reported."""
    by_code = {each.code: each for each in rules}
    return lambda each: (
        by_code[each.code].reported(each.severity) if each.code in by_code else each.severity
    )


def judge(path: str, data: bytes, rules: Sequence[Rule], project: Project) -> FileResult:
    """The static halves of `rules` over one file's bytes, nothing suppressed; what a rule raises
    goes on. Raises Unreadable for bytes that are no Python source."""
    module = PythonModule(path, data, project)
    return FileResult(path, _found(module, rules, None), _needs(module), absent=_absent(module))


def _with_broken_cells(result: FileResult, data: bytes) -> FileResult:
    """A cell that is no Python costs the others of its notebook nothing, and may be meant so."""
    if not is_notebook(result.path):
        return result
    from tensortrail.analyzer.reading.notebooks.shown import broken

    told = [own_finding(UNREADABLE, what, site) for what, site in broken(result.path, data)]
    found = [replace(each, severity=NOTE) for each in told]
    if not found:
        return result
    return result._replace(findings=(*result.findings, *found), digest=digest_of(data))


def _findings_of(rule: Rule, module: PythonModule) -> Iterable[Finding]:
    return rule.check(module)


def _found(
    module: PythonModule,
    rules: Sequence[Rule],
    crashed: OnCrash | None,
    findings_of: Callable[[Rule, PythonModule], Iterable[Finding]] = _findings_of,
    silent: Container[str] = (),
) -> tuple[Finding, ...]:
    """A rule that raises ends only its own work, where `crashed` says what to report of it."""
    found: list[Finding] = []
    left_out = module.project.limit.notes
    for number, rule in enumerate(rules):
        try:
            for each in findings_of(rule, module):
                found.append(each)  # noqa: PERF402 - what came before an error counts
        except TooMuch as why:
            codes = [each.code for each in rules[number:]]
            left_out.append(f"{_listed(codes)}, as {why}")
            break
        except RecursionError:
            left_out.append(f"{rule.code}, for which the code is nested too deeply")
        except Exception as error:
            if crashed is None:
                raise
            found.append(crashed(rule, error))
    if left_out:
        what = f"this file was checked in part; left out: {'; '.join(dict.fromkeys(left_out))}"
        found.append(own_finding(IN_PART, what, Site(module.path, 1)))
    module.release()
    unique = {(each.code, each.site.start, each.site.end, each.message): each for each in found}
    is_loud = partial(_is_loud, silent=silent)
    left = without_explained(unique.values(), rules, _weigh_by(rules), is_loud)
    return tuple(sorted(left, key=lambda each: each.sort_key))


def _listed(codes: Sequence[str]) -> str:
    return (
        f"{', '.join(codes[:3])} and {len(codes) - 3} more rules"
        if codes[4:]
        else (", ".join(codes))
    )


def _crashed(path: str) -> OnCrash:
    def report(rule: Rule, error: Exception) -> Finding:
        what = f"{rule.code} failed here: {type(error).__name__}: {error}"
        return own_finding(CRASHED, what, Site(path, 1))

    return report


def _needs(module: PythonModule) -> tuple[str, ...]:
    return tuple(sorted(module.needs - {module.path, all_of(module.path)}))


def _absent(module: PythonModule) -> tuple[str, ...]:
    return tuple(sorted(module.absent))
