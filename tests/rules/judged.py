"""What one rule says of a text, as its tests ask it."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.findings import Finding, Severity
from tensortrail.rules import all_rules

HEAD = "import torch\nfrom torch import nn\n\n\n"


def severity(code: str, source: str, path: str = "package/model.py") -> Severity | None:
    """Of the finding of this rule, of which there is one at most."""
    found = findings(code, source, path)
    assert len(found) <= 1
    return found[0].severity if found else None


def findings(code: str, source: str, path: str = "package/model.py") -> tuple[Finding, ...]:
    """Of this rule alone."""
    text = textwrap.dedent(source).encode()
    return judge(path, text, [all_rules()[code]()], open_project()).findings


def lines(code: str, source: str) -> list[tuple[int, Severity]]:
    """The same: in which line, and how bad."""
    return [(each.site.line, each.severity) for each in findings(code, source)]


def severities_in_project(folder: Path, files: dict[str, str], code: str) -> list[Severity]:
    """Of this rule alone, in a project whose package `net` has these files."""
    (folder / "pyproject.toml").write_text("")
    (folder / "net").mkdir()
    for name, text in {"__init__.py": "", **files}.items():
        (folder / "net" / name).write_text(text)
    request = CheckRequest(paths=(str(folder),), cache_dir=None, codes=frozenset((code,)))
    return [each.severity for each in check(request).findings]


def severity_in_package(folder: Path, code: str, source: str, **others: str) -> Severity | None:
    """Of this rule in `own.py` of a package, which `main.py` uses; `others` are more files."""
    main = "from pkg.own import Padded, Gate\n\nprint(Padded, Gate)\n"
    found = found_in_package(folder, code, source, **{"main": main, **others})
    return found[0].severity if found else None


def found_in_package(folder: Path, code: str, source: str, **others: str) -> tuple[Finding, ...]:
    """The same, with no other files but those that are named."""
    package = folder / "pkg"
    package.mkdir()
    for name, text in {"__init__": "", "own": source, **others}.items():
        (package / f"{name}.py").write_text(text)
    asked = CheckRequest(paths=(str(package / "own.py"),), cache_dir=None, codes=frozenset({code}))
    return tuple(check(asked).findings)
