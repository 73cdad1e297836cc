"""What the cache answers is what a check without it finds, whichever other file has changed: a
question that is answered without being noted shows here."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.choosing.rule_index import listed
from tensortrail.analyzer.facts.all_of import file_of, is_all_of
from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.findings import Finding
from tensortrail.rules import Bad, Good, all_rules

pytestmark = pytest.mark.long

_DEFINED = re.compile(r"\b(def|class)(\s+)(\w+)")
_CHANGES: dict[str, Callable[[str], str | None]] = {
    "removed": lambda text: None,
    "emptied": lambda text: "",
    "renamed": lambda text: _DEFINED.sub(r"\1\2\3_before", text),
    "elsewhere": lambda text: text.replace("cuda", "cpu").replace("device", "place"),
    "moved down": lambda text: f"\n\n{text}",
}


def _those_with_files() -> Iterator[ParameterSet]:
    for code, rule in all_rules().items():
        examples: list[Bad | Good] = [*rule.bad, *rule.good]
        for number, each in enumerate(examples):
            if any(name.endswith(".py") for name in each.files):
                yield pytest.param(code, each, id=f"{code}-{number}")


_WITH_FILES = list(_those_with_files())


@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize(("code", "example"), _WITH_FILES)
def test_a_changed_file_is_followed(
    tmp_path: Path, code: str, example: Bad | Good, change: str
) -> None:
    project = tmp_path / "project"
    for name, text in {**example.files, example.path: example.source}.items():
        _write(project / name, text)
    for number, (name, text) in enumerate(example.files.items()):
        cache = str(tmp_path / f"cache{number}")
        assert _found(project, code, cache) == _found(project, code, None)
        _write(project / name, _CHANGES[change](text))
        assert _found(project, code, cache) == _found(project, code, None), f"{change}: {name}"
        _write(project / name, text)


def _write(file: Path, text: str | None) -> None:
    if text is None:
        file.unlink()
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    stamp = file.stat().st_mtime_ns - 5_000_000
    os.utime(file, ns=(stamp, stamp))


def _found(project: Path, code: str | None, cache: str | None) -> tuple[Finding, ...]:
    codes = frozenset({code} if code else listed())
    request = CheckRequest(paths=(str(project),), cache_dir=cache, codes=codes, jobs=1)
    return check(request).findings


_PROJECT = {
    "__init__.py": "",
    "base.py": (
        "import torch\nfrom .deep import inner\n\n"
        "PLACE = 'cuda'\n\n"
        "class Base(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.table = torch.zeros(2, device='cuda')\n"
        "        self.offset = torch.zeros(2)\n\n"
        "    def start(self, n):\n"
        "        return torch.zeros(n)\n\n"
        "def made(x):\n"
        "    return inner(x)\n\n"
        "def load(n, device='cuda'):\n"
        "    return torch.zeros(n, device=device)\n\n"
        "def put(model):\n"
        "    model.to('cuda')\n"
    ),
    "deep.py": "import torch\n\ndef inner(x):\n    y = x * 2\n    return y\n",
    "tables.py": "import torch\n\ndef table(n, device=None):\n"
    "    return torch.arange(n, device=device)\n",
    "one.py": "from .tables import table\n\ndef f(x):\n    a = table(1, device=x.device)\n"
    "    b = table(2, device=x.device)\n    return a, b\n",
    "two.py": "from .tables import table\n\ndef g(x, d):\n"
    "    a = table(4, device=d)\n    return a, table(5, device=x.device)\n",
    "last.py": "import torch\nfrom .tables import table\n\ndef k(x, device):\n"
    "    return x.to(device) * table(8)\n",
    "model.py": (
        "import torch\nfrom .base import PLACE, Base, load, made, put\n\n"
        "class Model(Base):\n"
        "    def forward(self, x):\n"
        "        steps = torch.arange(3)\n"
        "        return made(x) + steps\n\n"
        "    def other(self, x):\n"
        "        return self.table.numpy(), x.cuda() + self.start(3)\n\n"
        "    def more(self, x):\n"
        "        return x.cuda() + self.offset\n\n"
        "def run(x, device):\n"
        "    y = torch.zeros(3, device=PLACE).numpy()\n"
        "    return x.to(device) + load(3), y\n\n"
        "def train(x):\n"
        "    model = torch.nn.Linear(2, 2)\n"
        "    put(model)\n"
        "    return model(torch.zeros(2))\n"
    ),
}
_OF_A_LINE: tuple[Callable[[str], str], ...] = (
    lambda line: "",
    lambda line: line.replace("cuda", "cpu"),
    lambda line: line.replace("torch.zeros(n)", "torch.zeros(n, device='cuda')"),
    lambda line: line.replace("x * 2", "torch.zeros(2)"),
    lambda line: line.replace("torch.zeros(2)", "torch.zeros(2, device='cuda')"),
    lambda line: line.replace("device=", "place="),
)


@pytest.mark.parametrize("name", ["base.py", "deep.py", "tables.py", "one.py", "two.py"])
def test_each_line_of_another_file_counts(tmp_path: Path, name: str) -> None:
    project, cache = tmp_path / "pack", str(tmp_path / "cache")
    for each, text in _PROJECT.items():
        _write(project / each, text)
    usual, differ = _found(project, None, cache), 0
    lines = _PROJECT[name].splitlines(keepends=True)
    for number, line in enumerate(lines):
        for change in _OF_A_LINE:
            changed = "".join([*lines[:number], change(line), *lines[number + 1 :]])
            if changed == _PROJECT[name] or not _is_python(changed):
                continue
            _write(project / name, changed)
            found = _found(project, None, None)
            assert _found(project, None, cache) == found, changed
            differ += found != usual
            _write(project / name, _PROJECT[name])
            assert _found(project, None, cache) == usual
    assert differ > 1


def _is_python(text: str) -> bool:
    try:
        return bool(ast.parse(text))
    except SyntaxError:
        return False


@pytest.mark.parametrize(("code", "example"), _WITH_FILES)
def test_who_opens_a_file_needs_it_and_what_it_answers_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, example: Bad | Good
) -> None:
    texts = {**example.files, example.path: example.source}
    for name, text in texts.items():
        _write(tmp_path / name, text)
    for name in filter(lambda each: each.endswith(".py"), texts):
        path, project, opened = str(tmp_path / name), open_project(), set[str]()
        project.answers.wanted = True
        _spy(monkeypatch, opened)
        needs = {*judge(path, texts[name].encode(), [all_rules()[code]()], project).needs}
        monkeypatch.undo()
        assert opened <= needs | {path}
        whole = {each for need in needs if is_all_of(need) for each in (need, file_of(need))}
        assert needs <= project.answers.taken().keys() | whole | {path}


def _spy(monkeypatch: pytest.MonkeyPatch, opened: set[str]) -> None:
    module_at = Project.module_at

    def noticed(project: Project, path: str) -> ProjectFile | None:
        opened.add(path)
        return module_at(project, path)

    monkeypatch.setattr(Project, "module_at", noticed)
