"""What a file answers others does not depend on who asks, how deep in other functions, or in which
order: findings would depend on the order of files, and a kept answer on the check that found it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.choosing.rule_index import listed
from tensortrail.analyzer.facts.answers import digest
from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.judging.asking_again import answer_to
from tensortrail.analyzer.judging.judge import Judge
from tensortrail.findings import Finding

_LONG = 9
_INSIDE = range(1, 15)
_STEPS = range(1, _LONG)


def _step(number: int) -> str:
    """Each file asks the next one, and what stands in a class of it."""
    following = number + 1
    return (
        f"import torch\nfrom pkg.step{following} import Part{following}, make{following}\n\n"
        f"class Part{number}(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        f"        self.part = Part{following}()\n"
        f"        self.table = make{following}(3)\n\n"
        "    @property\n"
        "    def wide(self):\n"
        "        return self.part.wide\n\n"
        "    def shown(self, x):\n"
        "        return self.wide.numpy(), x.cuda() + self.table\n\n"
        f"def make{number}(n):\n"
        f"    return make{following}(n)\n\n"
        f"def moved{number}(x):\n"
        f"    return x + Part{number}().table\n"
    )


_LAST = (
    "import torch\n\n"
    f"class Part{_LONG}(torch.nn.Module):\n"
    "    @property\n"
    "    def wide(self):\n"
    "        return torch.zeros(3).cuda()\n\n"
    f"def make{_LONG}(n):\n"
    "    return torch.zeros(n)\n"
)
_ONE_FILE = "import torch\n\n" + "".join(
    f"def inner{n}(n):\n    x = inner{n + 1}(n)\n    return x\n\n" for n in _INSIDE
)
_AROUND = {
    "__init__": "",
    "inner": f"{_ONE_FILE}def inner{_INSIDE.stop}(n):\n    return torch.zeros(n)\n",
    "state": (
        "import torch\nfrom pkg.holder import Holder\n\n"
        "class State:\n"
        "    def __init__(self):\n"
        "        self.table = torch.zeros(3)\n"
        "        self.holder = Holder(self)\n\n"
        "    @property\n"
        "    def spread(self):\n"
        "        return self.holder.spread\n"
    ),
    "holder": (
        "import torch\nimport pkg.state\n\n"
        "class Holder:\n"
        "    def __init__(self, state=None):\n"
        "        self.state = pkg.state.State() if state is None else state\n"
        "        self.many = self.count() > 1\n\n"
        "    def count(self):\n"
        "        return torch.zeros(3) if self.state.table is None else 2\n\n"
        "    @property\n"
        "    def spread(self):\n"
        "        return self.many\n"
    ),
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg"
    folder.mkdir()
    steps = {f"step{number}": _step(number) for number in _STEPS}
    for name, text in {**_AROUND, **steps, f"step{_LONG}": _LAST}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


_OF_ATTRIBUTES = ("facts.questions:assigned", "places.outside:attribute_of")
_OF_FUNCTIONS = ("facts.questions:facts_of_function", "places.outside:places_of")
_Asked = tuple[str, str]


def _questions() -> list[_Asked]:
    """Each with the file that is asked."""
    attributes = [
        *((f"step{n}", f"Part{n}\t{name}") for n in _STEPS for name in ("wide", "table", "part")),
        *(("state", f"State\t{name}") for name in ("spread", "table", "holder")),
        *(("holder", f"Holder\t{name}") for name in ("spread", "many", "state")),
    ]
    functions = [
        *((f"step{n}", f"{name}{n}") for n in _STEPS for name in ("make", "moved")),
        *(("inner", f"inner{n}") for n in _INSIDE),
    ]
    return [
        (file, f"tensortrail.analyzer.{question}\t{about}")
        for all_of, asked in ((attributes, _OF_ATTRIBUTES), (functions, _OF_FUNCTIONS))
        for file, about in all_of
        for question in asked
    ]


def _answers(folder: Path, asked: Sequence[_Asked], project: Project | None) -> dict[_Asked, str]:
    """By one project that keeps what it learns, or each by a new one."""
    said = {}
    for file, question in asked:
        around = project or _project()
        path = str(folder / f"{file}.py")
        said[file, question] = answer_to(around, around.module_at(path), question)
    return said


def _project() -> Project:
    return Judge(CheckRequest(cache_dir=None)).project


def test_each_order_of_asking_gives_the_same_answers(package: Path) -> None:
    asked = _questions()
    alone = _answers(package, asked, None)
    assert len({*alone.values()} - {digest(None)}) > 10
    orders = random.Random(1)
    for _ in range(6):
        said = _answers(package, asked, _project())
        assert {key: said[key] for key in said if said[key] != alone[key]} == {}
        orders.shuffle(asked)


def test_findings_do_not_depend_on_the_order_of_files(package: Path) -> None:
    files = sorted(package.iterdir())
    alone = {each: _findings([each])[each] for each in files}
    assert sum(map(bool, alone.values())) > 3
    assert _findings(files) == alone
    assert _findings(files[::-1]) == alone


def _findings(files: Sequence[Path]) -> dict[Path, Sequence[Finding]]:
    """In this order, by one judge, with all rules."""
    judge = Judge(CheckRequest(cache_dir=None, codes=frozenset(listed())))
    found: dict[Path, Sequence[Finding]] = {}
    for each in files:
        data = each.read_bytes()
        found[each] = judge.file(str(each), data, judge.chosen.rules_for(data)).findings
    return found
