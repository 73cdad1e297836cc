"""Findings for reporters to show."""

from __future__ import annotations

from tensortrail.findings import (
    Confidence,
    Edit,
    Finding,
    Fix,
    Report,
    RuleInfo,
    Safety,
    Setting,
    Severity,
    Site,
    Step,
)

INFO = RuleInfo(
    "OFF101",
    "unguarded-deallocate",
    "The caller's module is moved.",
    Severity.ERROR,
    Confidence.HIGH,
    "# unguarded-deallocate (OFF101)\n",
)


def site(
    line: int = 3, column: int = 5, source: str = "    park(model)", file: str = "a.py"
) -> Site:
    end = len(source) + 1
    return Site(file, line, column, line, end, 30, 30 + end - column, "f", source)


def finding(**changes: object) -> Finding:
    given: dict[str, object] = {
        "code": "OFF101",
        "name": "unguarded-deallocate",
        "message": "`model` is moved whatever `offload` says",
        "severity": Severity.ERROR,
        "confidence": Confidence.HIGH,
        "site": site(),
    }
    return Finding(**(given | changes))  # type: ignore[arg-type]


def full_finding() -> Finding:
    edit = Edit(site(), "if offload:\n        park(model)")
    return finding(
        confidence=Confidence.MEDIUM,
        trail=(Step(site(1, 7, "def f(model, offload):"), "`model` comes from the caller"),),
        fixes=(
            Fix(
                "guard it",
                Safety.UNSAFE,
                (edit,),
                "@@ -3 +3,2 @@\n-    park(model)\n+    if offload:",
            ),
        ),
        settings=(Setting("lib", "offload", "False", "keeps it in place", "compile(...)"),),
        siblings=(site(9), site(12)),
        evidence={"guards": "none"},
    )


def report(*findings: Finding, problems: tuple[str, ...] = (), root: str = "") -> Report:
    return Report(findings, {"OFF101": INFO}, 7, 0, problems, root, "0.1.0")
