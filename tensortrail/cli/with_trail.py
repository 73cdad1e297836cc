"""`check --with-trail`: findings in source beside a recorded run of it."""

from __future__ import annotations

from collections.abc import Sequence

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import ignored
from tensortrail.analyzer.judging.suppress import silenced, suppressions_in
from tensortrail.analyzer.reading.python_files import python_of
from tensortrail.analyzer.reading.source import Unreadable
from tensortrail.config import ConfigError
from tensortrail.files import read
from tensortrail.findings import Finding
from tensortrail.rules import all_rules


def weighed(findings: Sequence[Finding], run: str, request: CheckRequest) -> tuple[Finding, ...]:
    """What the run confirmed is raised, what it passed through without harm is lowered, and what
    only it shows is added, unless a comment or the configuration silences it."""
    from tensortrail.tracer.reading.findings_of_run import merge
    from tensortrail.tracer.reading.timeline import open_run
    from tensortrail.tracer.trail.reader import NotATrail

    codes = request.codes
    rules = [
        rule()
        for code, rule in all_rules().items()
        if (rule.default if codes is None else code in codes)
    ]
    try:
        merged = merge(findings, open_run(run), rules)
    except NotATrail as error:
        raise ConfigError(f"--with-trail {error}") from error
    known = {(each.code, each.site.file, each.site.line) for each in findings}
    return tuple(
        each
        for each in merged
        if (each.code, each.site.file, each.site.line) in known
        or not (ignored(request, each) or _silenced(each))
    )


def _silenced(finding: Finding) -> bool:
    try:
        data = python_of(finding.site.file, read(finding.site.file))
    except (OSError, Unreadable):
        return False
    return silenced(finding, suppressions_in(data))
