"""From paths to findings, whatever the paths hold."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest, CheckResult
from tensortrail.analyzer.choosing.rule_index import listed, listed_as
from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.judge import Judge
from tensortrail.analyzer.judging.module import PythonModule
from tensortrail.findings import Finding, Severity
from tensortrail.rules import Module, Rule, all_rules

pytestmark = pytest.mark.long

BAD = 'def f(t):\n    return t.weight.device == "meta"\n'
CLEAN = "x = 1\n"


def run(folder: Path, **options: object) -> CheckResult:
    given: dict[str, object] = {"paths": (str(folder),), "cache_dir": None, "root": str(folder)}
    return check(CheckRequest(**(given | options)))  # type: ignore[arg-type]


def codes(result: CheckResult) -> list[tuple[str, str, int]]:
    return [(Path(each.site.file).name, each.code, each.site.line) for each in result.findings]


def test_finds_and_counts(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "clean.py").write_text(CLEAN)
    result = run(tmp_path)
    assert codes(result) == [("bad.py", "DEV501", 2)]
    assert len(result.files) == 2


def test_bad_input_is_reported_and_the_rest_is_checked(tmp_path: Path) -> None:
    (tmp_path / "a_syntax.py").write_text('x.device == "meta"\ndef (\n')
    (tmp_path / "b_nul.py").write_bytes(b'x.device == "meta"\0\n')
    (tmp_path / "c_coding.py").write_bytes(b'# coding: klingon\nx.device == "meta"\n')
    (tmp_path / "d_bytes.py").write_bytes(b'x = "\xff\xfe"\ny.device == "meta"\n')
    deep = "(" * 5000 + "x.device" + ")" * 5000
    (tmp_path / "e_deep.py").write_text(f'{deep} == "meta"\ny.device == "meta"\n')
    (tmp_path / "f_bad.py").write_text(BAD)
    found = codes(run(tmp_path))
    unreadable = [name for name, code, _ in found if code == "TTR001"]
    assert unreadable == ["a_syntax.py", "b_nul.py", "c_coding.py", "d_bytes.py", "e_deep.py"]
    assert ("f_bad.py", "DEV501", 2) in found


def test_what_cannot_be_read_and_need_not_be_mended_is_a_note(tmp_path: Path) -> None:
    asks = 'import torch\nx.device == "meta"\n'
    (tmp_path / "a.py").write_text(f"# coding: future_fstrings\n{asks}")
    (tmp_path / "b.py").write_bytes(f"# coding: ascii\n{asks}".encode() + b"x = '\xff'\n")
    (tmp_path / "c.py").write_text(f"{asks}print x\n")
    (tmp_path / "d.py").write_text('x.device == "meta"\nprint x\n')
    found = {Path(each.site.file).stem: each.severity for each in run(tmp_path).findings}
    note, error = Severity.NOTE, Severity.ERROR
    assert found == {"a": note, "b": error, "c": error, "d": note}


def test_a_large_generated_file_is_checked(tmp_path: Path) -> None:
    lines = "".join(f"x{number} = [{number}, 'text']\n" for number in range(50_000))
    (tmp_path / "large.py").write_text(lines + BAD)
    assert [code for _, code, _ in codes(run(tmp_path))] == ["DEV501"]


@pytest.mark.skipif(sys.platform == "win32", reason="names that Windows does not allow")
def test_odd_names(tmp_path: Path) -> None:
    names = ["new\nline.py", "\x1b[31mred.py", "emoji \U0001f525.py", "per%cent,comma.py"]
    for name in names:
        (tmp_path / name).write_text(BAD)
    (tmp_path / os.fsdecode(b"raw\xff.py")).write_text(BAD)
    assert len(run(tmp_path).findings) == len(names) + 1


def test_a_link_that_leads_back_is_entered_once(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(BAD)
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    assert len(run(tmp_path).findings) == 1


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "bad.py").write_text(BAD)
    named = run(tmp_path, paths=(str(tmp_path / "bad.py"), str(tmp_path)))
    assert codes(named) == [("bad.py", "DEV501", 2)]


def test_a_missing_path_is_told(tmp_path: Path) -> None:
    assert run(tmp_path, paths=(str(tmp_path / "no"),)).missing == (str(tmp_path / "no"),)


class Crashing(Rule):
    code = "ZZZ901"
    name = "crashing"

    def check(self, module: Module) -> object:  # type: ignore[override]
        raise ZeroDivisionError("on purpose")


def test_a_rule_that_crashes_ends_only_its_own_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = {"ZZZ901": listed_as(Crashing), **listed()}
    for user in ("judging.judge", "choosing.chosen"):
        monkeypatch.setattr(f"tensortrail.analyzer.{user}.listed", lambda: rules)
    (tmp_path / "bad.py").write_text(BAD)
    result = run(tmp_path)
    assert [code for _, code, _ in codes(result)] == ["TTR003", "DEV501"]
    assert "ZZZ901" in result.findings[0].message
    assert "ZeroDivisionError" in result.findings[0].message


class Noting(Rule):
    code = "ZZZ902"
    name = "noting"
    notes = False

    def check(self, module: Module) -> Iterator[Finding]:
        for severity in (Severity.WARNING, Severity.NOTE):
            yield self.finding(
                module, next(iter(module.nodes(ast.Name))), severity.value, severity=severity
            )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({}, ["warning"]),
        ({"codes": frozenset({"ZZZ902"})}, ["note", "warning"]),
        ({"codes": frozenset({"ZZZ902"}), "noted": frozenset()}, ["warning"]),
    ],
)
def test_notes_that_are_told_only_where_their_rule_is_selected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, object], told: list[str]
) -> None:
    for user in ("judging.judge", "choosing.chosen"):
        rules = {"ZZZ902": listed_as(Noting)}
        monkeypatch.setattr(f"tensortrail.analyzer.{user}.listed", lambda rules=rules: rules)
    (tmp_path / "clean.py").write_text(CLEAN)
    assert sorted(each.message for each in run(tmp_path, **asked).findings) == told


class Doubtful(Noting):
    """It is sure of a warning, and only the note that it is not sure of is silent."""

    code = "ZZZ903"
    name = "doubtful"
    warns = False

    def check(self, module: Module) -> Iterator[Finding]:
        yield from super().check(module)
        name = next(iter(module.nodes(ast.Name)))
        yield self.finding(module, name, "error", severity=Severity.ERROR)


def test_warnings_that_are_reported_as_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("judging.judge", "choosing.chosen"):
        rules = {"ZZZ903": listed_as(Doubtful)}
        monkeypatch.setattr(f"tensortrail.analyzer.{user}.listed", lambda rules=rules: rules)
    (tmp_path / "clean.py").write_text(CLEAN)
    found = {(each.message, each.severity) for each in run(tmp_path).findings}
    assert found == {("warning", Severity.NOTE), ("error", Severity.ERROR)}
    assert Doubtful.info().severity is Severity.NOTE


class StandsFor(Rule):
    """It would be reported as a note."""

    code = "ZZZ904"
    name = "stands-for"
    warns = False
    explains = ("ZZZ902",)

    def check(self, module: Module) -> Iterator[Finding]:
        yield self.finding(module, next(iter(module.nodes(ast.Name))), "more than that")


def test_what_stands_for_a_warning_is_reported_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in ("judging.judge", "choosing.chosen"):
        rules = {each.code: listed_as(each) for each in (Noting, StandsFor)}
        monkeypatch.setattr(f"tensortrail.analyzer.{user}.listed", lambda rules=rules: rules)
    (tmp_path / "clean.py").write_text(CLEAN)
    found = [(each.message, each.severity) for each in run(tmp_path).findings]
    assert found == [("more than that", Severity.WARNING)]
    monkeypatch.setattr(Noting, "warns", False)
    assert [each.severity for each in run(tmp_path).findings] == [Severity.NOTE]


def test_per_file_ignores(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "bad.py").write_text(BAD)
    (tmp_path / "bad.py").write_text(BAD)
    result = run(tmp_path, per_file_ignores={"sub/*": frozenset({"DEV501"})})
    assert [Path(each.site.file).parent for each in result.findings] == [tmp_path]


def test_a_buffer_in_place_of_files() -> None:
    result = check(CheckRequest(stdin=("editor.py", BAD.encode()), cache_dir=None))
    assert codes(result) == [("editor.py", "DEV501", 2)]


def test_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensortrail.analyzer.judging.jobs._WORTH_PROCESSES", 0)
    for number in range(12):
        (tmp_path / f"bad{number}.py").write_text(BAD)
    assert run(tmp_path, jobs=2).findings == run(tmp_path, jobs=1).findings


def test_the_filter_loses_nothing(tmp_path: Path) -> None:
    """Every rule's bad examples, with the filter and without."""
    for code, rule in all_rules().items():
        for number, bad in enumerate(rule.bad):
            folder = tmp_path / f"{code.lower()}_{number}"
            for name, text in {bad.path: bad.source, **bad.files}.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text)
    every = frozenset(all_rules())
    with_filter = run(tmp_path, codes=every, siblings=False)
    without = run(tmp_path, codes=every, siblings=False, use_triggers=False)
    assert len(with_filter.findings) > len(all_rules())
    assert with_filter.findings == without.findings


@pytest.mark.parametrize("warm", [False, True])
def test_a_clean_run_imports_nothing_heavy(tmp_path: Path, warm: bool) -> None:
    (tmp_path / "clean.py").write_text("import torch\nx = torch.zeros(2).to('cuda')\n")
    program = textwrap.dedent(
        """
        import sys
        from tensortrail.cli import main
        code = main(["check", sys.argv[1]])
        heavy = {"torch", "libcst", "rich", "pathspec", "platformdirs"} & set(sys.modules)
        judged = {"tensortrail.rules", "tensortrail.findings", "dataclasses"} & set(sys.modules)
        print(code, sorted(heavy), len(judged))
        """
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    for _ in range(2 if warm else 1):
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.splitlines()[-1] == f"0 [] {0 if warm else 3}"


def test_files_that_were_judged_are_let_go_without_the_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[PythonModule]] = []

    def noted(path: str, data: bytes, project: Project) -> PythonModule:
        module = PythonModule(path, data, project)
        made.append(weakref.ref(module))
        return module

    monkeypatch.setattr("tensortrail.analyzer.judging.judge.PythonModule", noted)
    monkeypatch.setattr("tensortrail.analyzer.judging.module.PythonModule", noted)
    monkeypatch.setattr("tensortrail.analyzer.facts.project._KEPT", 0)
    (tmp_path / "base.py").write_text(BASE)
    (tmp_path / "__init__.py").write_text("")
    using = tmp_path / "using.py"
    using.write_text(f"from {tmp_path.name}.base import Base\n{USING}")
    judge = Judge(CheckRequest(use_triggers=False))
    gc.collect()
    gc.disable()
    try:
        data = using.read_bytes()
        found = judge.file(str(using), data, judge.chosen.rules_for(data)).findings
        judge.file("empty.py", b"", judge.chosen.rules_for(b""))
        alive = [each for each in made if each() is not None]
    finally:
        gc.enable()
    assert [each.code for each in found] == ["DEV501"]
    assert len(made) == 3
    assert not alive


BASE = """\
import torch

class Base(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.arange(4)

    def place(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.table.device)
"""
USING = """\
import torch

class Used(Base):
    def forward(self, x: torch.Tensor):
        y = self.place(x)
        if x.device == "cuda":
            return y + self.table
        return y
"""
