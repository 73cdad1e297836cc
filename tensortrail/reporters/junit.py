"""JUnit's XML, which nearly every CI shows: a test case for each finding, failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from xml.etree import ElementTree as xml

from tensortrail.findings import Finding, Report
from tensortrail.inert import headline, inert
from tensortrail.reporters.content import path_from_here
from tensortrail.reporters.summary import by_hand, place_of

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    count = len(report.findings)
    cases = str(count or 1)
    top = xml.Element("testsuites", name="tensortrail", tests=cases, failures=str(count))
    for file, group in groupby(report.findings, key=lambda each: each.site.file):
        _suite(top, path_from_here(file), list(group))
    if not count:
        clean = xml.SubElement(
            top, "testsuite", name="tensortrail", tests="1", failures="0", errors="0"
        )
        name = f"{report.files_checked} file{'s' * (report.files_checked != 1)} checked"
        xml.SubElement(clean, "testcase", classname="tensortrail", name=name)
    xml.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + xml.tostring(top, encoding="unicode")


def _suite(top: xml.Element, file: str, findings: list[Finding]) -> None:
    count = str(len(findings))
    name = _text(file)
    suite = xml.SubElement(top, "testsuite", name=name, tests=count, failures=count, errors="0")
    for each in findings:
        title = f"{each.code} {each.name} at {place_of(each.site)}"
        case = xml.SubElement(suite, "testcase", classname=name, name=_text(title))
        failure = xml.SubElement(
            case, "failure", type=each.severity.value, message=_text(headline(each.message))
        )
        failure.text = "\n".join(_text(line) for told in _told(each) for line in told.split("\n"))


def _told(finding: Finding) -> Iterator[str]:
    yield f"{place_of(finding.site)}: {finding.message}"
    for step in finding.trail:
        yield f"{place_of(step.site)}: {step.message}"
    yield from by_hand(finding)
    for fix in finding.fixes[:1]:
        if fix.preview:
            yield f"{fix.description} ({fix.safety.value}):\n{fix.preview}"


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", inert(text))
