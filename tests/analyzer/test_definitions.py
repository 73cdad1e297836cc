"""Where the names of other files lead, and that the way is gone once."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.judging.module import PythonModule, open_project


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .parts import *\n")
    (folder / "parts.py").write_text("from .deep import Layer as Block\n")
    (folder / "deep.py").write_text(
        "import torch\n\nclass Layer(torch.nn.Module):\n    def forward(self, x):\n        pass\n"
    )
    return folder


def asked(folder: Path, name: str, project: Project, source: str = "") -> PythonModule:
    return PythonModule(str(folder / name), source.encode(), project)


def counted(project: Project, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file is read, though nothing that was read is kept."""
    read: Counter[str] = Counter()
    opened = project._opened

    def count(path: str) -> object:
        read[Path(path).name] += 1
        return opened(path)

    monkeypatch.setattr(project, "_opened", count)
    monkeypatch.setattr("tensortrail.analyzer.facts.project._KEPT", 0)
    return read


def test_a_class_is_found_through_star_imports_and_aliases(package: Path) -> None:
    facts = asked(package, "model.py", open_project()).class_facts("pkg.Block")
    assert facts is not None
    assert facts.is_module
    assert facts.name == "pkg.deep.Layer"


def test_its_files_are_read_once_for_all_that_ask(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project()
    read = counted(project, monkeypatch)
    for number in range(3):
        module = asked(package, f"model{number}.py", project)
        facts = module.class_facts("pkg.Block")
        assert facts is not None
        assert module.class_facts("pkg.Missing") is None
        assert {Path(each).name for each in module.needs} == {"__init__.py", "parts.py", "deep.py"}
        project.trim()
    assert read == {"__init__.py": 1, "parts.py": 1, "deep.py": 1}


@pytest.mark.parametrize("changed", ["parts.py", "deep.py"])
def test_a_changed_file_is_asked_again(package: Path, changed: str) -> None:
    project = open_project()
    before = asked(package, "model.py", project).class_facts("pkg.Block")
    assert before is not None
    assert before.methods == {"forward"}
    (package / changed).write_text("class Layer:\n    def other(self):\n        pass\nBlock = 1\n")
    project.forget(str(package / changed))
    after = asked(package, "model.py", project).class_facts("pkg.Block")
    assert (after.methods if after is not None else None) == (
        {"other"} if changed == "deep.py" else None
    )


def test_the_text_that_is_judged_counts_for_itself_and_the_disk_for_others(package: Path) -> None:
    """An editor judges what is typed, which is not saved yet."""
    project = open_project()
    typed = (
        "from pkg.parts import Block\n\nclass Layer(Block):\n    def typed(self):\n        pass\n"
    )
    own = asked(package, "deep.py", project, typed).class_facts("pkg.deep.Layer")
    assert own is not None
    assert "typed" in own.methods
    other = asked(package, "model.py", project).class_facts("pkg.deep.Layer")
    assert other is not None
    assert other.methods == {"forward"}


TAKES = "import pkg.deep\n\npkg.deep.made(1)\npkg.deep.Wide(1)\n"
DEFINED = """\
from pkg.parts import Base

def made(rows, device=None):
    pass

class Wide(Base):
    pass
"""


def parameters(folder: Path, name: str, project: Project) -> list[tuple[str, ...]]:
    module = asked(folder, name, project, TAKES)
    return [module.parameters_of(each) for each in module.nodes(ast.Call)]


def test_what_a_callee_takes_is_kept_though_its_file_is_let_go_of(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "deep.py").write_text(DEFINED)
    (package / "parts.py").write_text("class Base:\n    def __init__(self, size):\n        pass\n")
    project = open_project()
    read = counted(project, monkeypatch)
    for number in range(3):
        assert parameters(package, f"model{number}.py", project) == [("rows", "device"), ("size",)]
        project.trim()
    assert read["deep.py"] == read["parts.py"] == 1
    (package / "parts.py").write_text("class Base:\n    def __init__(self, width):\n        pass\n")
    project.forget(str(package / "parts.py"))
    assert parameters(package, "model.py", project) == [("rows", "device"), ("width",)]


def test_classes_that_inherit_from_each_other_over_files_take_nothing(package: Path) -> None:
    (package / "deep.py").write_text(DEFINED)
    (package / "parts.py").write_text("from pkg.deep import Wide\n\nclass Base(Wide):\n    pass\n")
    assert parameters(package, "model.py", open_project()) == [("rows", "device"), ()]


def test_what_many_files_ask_about_stays_when_room_is_made(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project()
    deep, parts = str(package / "deep.py"), str(package / "parts.py")
    for _ in range(2):
        project.trim()
        project.module_at(deep)
    project.trim()
    project.module_at(parts)  # asked about last, by one file
    monkeypatch.setattr(
        "tensortrail.analyzer.facts.project._KEPT", (package / "deep.py").stat().st_size
    )
    project.trim()
    assert list(project._modules) == [deep]
