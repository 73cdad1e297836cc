"""Codes the engine itself reports under, beside the rules'."""

from __future__ import annotations

from dataclasses import replace

from tensortrail.analyzer.choosing.request import FileResult
from tensortrail.findings import Confidence, Finding, RuleInfo, Severity, Site

UNREADABLE = "TTR001"
UNUSED = "TTR002"
CRASHED = "TTR003"
IN_PART = "TTR004"
WORD = b"torch"
"""A file without it, that cannot be parsed, is of no interest here."""

OWN = {
    code: RuleInfo(code, name, summary, severity, Confidence.HIGH, f"# {name} ({code})\n\n{text}\n")
    for code, name, summary, severity, text in (
        (
            UNREADABLE,
            "unreadable-source",
            "A file cannot be read or parsed.",
            Severity.ERROR,
            "The file is not valid Python, or cannot be opened, so nothing in it was checked. "
            "All other files were. The check reads the syntax of the Python that runs it: what "
            "looks like that of a later one is a note. So is an encoding that is not known, as a "
            "package may bring it, a template from which Python is made, and what is wrong in a "
            "file without the word `torch`, unless `--syntax` asks for all.",
        ),
        (
            UNUSED,
            "unused-suppression",
            "A comment suppresses a finding that is not there.",
            Severity.WARNING,
            "The risk is gone, or the comment stands on another line than the finding. "
            "Remove the comment, so that it cannot hide a later one. A comment that names no rule "
            "is reported too: inside the brackets are codes, not names or prefixes.",
        ),
        (
            CRASHED,
            "rule-crashed",
            "A rule failed on this file.",
            Severity.WARNING,
            "An error inside tensortrail or a third party's rule. Everything else was checked. "
            "Please report it with the file, or a part of it that shows the failure.",
        ),
        (
            IN_PART,
            "checked-in-part",
            "A file takes too much work, and was not checked as a whole.",
            Severity.WARNING,
            "The file is very large, nested very deeply, or of a shape that makes the work grow. "
            "The message says which rules, functions or statements were left out; what is "
            "reported beside it holds, and all other files were checked. Split the file, or "
            "exclude it if it is generated.",
        ),
    )
}


def own_finding(code: str, message: str, site: Site) -> Finding:
    info = OWN[code]
    return Finding(code, info.name, message, info.severity, info.confidence, site)


def only(code: str, message: str, site: Site) -> FileResult:
    return FileResult(site.file, (own_finding(code, message, site),))


def unopened(path: str, error: OSError) -> FileResult:
    message = f"cannot be opened: {error.strerror or error}"
    return only(UNREADABLE, message, Site(path, 1))


def unreadable(path: str, error: ValueError, apart: bool = False) -> FileResult:
    """For a `Unreadable` of the source; `apart` if it has nothing to do with torch."""
    place = Site(path, getattr(error, "line", 1), getattr(error, "column", 1))
    found = own_finding(UNREADABLE, str(error), place)
    if apart or getattr(error, "may_run", False):  # nobody has to mend that
        found = replace(found, severity=Severity.NOTE)
    return FileResult(path, (found,))


def ended(path: str) -> FileResult:
    return only(CRASHED, "the process that judged this file was ended by it", Site(path, 1))
