"""A file that has changed and says the same to those that ask it costs only itself to be judged."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest, FileResult
from tensortrail.analyzer.choosing.rule_index import Listed, listed
from tensortrail.analyzer.facts.all_of import all_of
from tensortrail.analyzer.facts.answers import digest
from tensortrail.analyzer.judging.asked_before import FILE
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.judge import Judge
from tensortrail.rules.places import Held, Place, What, Where

DEEP = """import torch

class Deep(torch.nn.Module):
    def make(self, n):
        return torch.zeros(n)
"""
BASE = """import torch
from pkg.deep import Deep

LIMIT = 3

class Base(Deep):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(3))
        self.offset = self.helper(3)

    def helper(self, n):
        count = n + 1
        return torch.zeros(count)

    def moved(self, x):
        return x.to(self.weight.device)

def make_mask(n, device=None):
    return torch.ones(n, device=device)

def unused(n):
    return n + 1
"""
MODEL = """import torch
from pkg.base import LIMIT, Base, make_mask

class Model(Base):
    def forward(self, x):
        mask = make_mask(LIMIT, device=x.device)
        y = self.helper(4) + torch.zeros(1, device=x.device)
        return self.moved(x) * mask + y + self.weight + self.offset
"""
GUARDED = """import torch
from pkg.base import Base

class Quiet(Base):
    def forward(self, x):
        return self.moved(x) + self.weight
"""


_ALL, _NONE = frozenset(listed()), frozenset[str]()


class Package:
    """Three files, each of which asks the one before."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "pkg"
        self.folder.mkdir()
        self._cache = str(folder / "cache")
        self.write(__init__="", deep=DEEP, base=BASE, model=MODEL, quiet=GUARDED)
        self._judged: list[str] = []
        judge = Judge.file

        def counted(self_: Judge, path: str, data: bytes, rules: Sequence[Listed]) -> FileResult:
            self._judged.append(Path(path).stem)
            return judge(self_, path, data, rules)

        monkeypatch.setattr(Judge, "file", counted)

    def write(self, **texts: str) -> None:
        for name, text in texts.items():
            file = self.folder / f"{name}.py"
            file.write_text(text)
            stamp = file.stat().st_mtime_ns - 5_000_000
            os.utime(file, ns=(stamp, stamp))

    def edit(self, name: str, before: str, after: str) -> None:
        text = (self.folder / f"{name}.py").read_text()
        assert before in text
        self.write(**{name: text.replace(before, after)})

    @property
    def answers(self) -> Path:
        return self.folder.parent / "cache" / FILE

    def kept(self) -> Any:
        return json.loads(self.answers.read_bytes().partition(b"\n")[2])

    def asked(self, name: str) -> set[str]:
        """What the file was asked by others."""
        return set(self.kept()[1][str(self.folder / f"{name}.py")][1])

    def judged(self) -> set[str]:
        """What is judged now; the findings are those of a check without a cache."""
        request = CheckRequest(
            paths=(str(self.folder),), cache_dir=self._cache, codes=_ALL, noted=_NONE, jobs=1
        )
        self._judged.clear()
        found = check(request).findings
        self.found = {Path(each.site.file).stem for each in found}
        self.codes = {each.code for each in found}
        judged = set(self._judged)
        assert found == check(request._replace(cache_dir=None)).findings
        return judged


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    package = Package(tmp_path, monkeypatch)
    assert package.judged() == {"deep", "base", "model", "quiet"}
    assert package.judged() == set()
    return package


def test_nothing_is_found_where_only_facts_are_compared(package: Package) -> None:
    package.edit("quiet", "self.weight", "self.weight * 2")
    assert package.judged() == {"quiet"}
    assert package.found == set()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\n", "import torch\n# a comment\n"),
        ("        count = n + 1\n", "        count = n + 2\n"),
        ("    return n + 1\n", "    return n + 2\n"),
        ("def unused(n):\n", "\n\ndef unused(n):\n"),
    ],
)
def test_a_change_that_alters_no_answer_costs_the_file_alone(
    package: Package, before: str, after: str
) -> None:
    package.edit("base", before, after)
    assert package.judged() == {"base"}
    assert package.judged() == set()


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("base", "return torch.zeros(count)", "return count"),
        ("base", "return x.to(self.weight.device)", "return x"),
        ("base", "torch.nn.Parameter(torch.zeros(3))", "None"),
        ("base", "self.offset = self.helper(3)", "self.offset = None"),
        ("base", "LIMIT = 3", "LIMIT = torch.zeros(3)"),
        ("base", "class Base(Deep)", "class Base"),
        ("base", "def make_mask(n, device=None)", "def make_mask(n, device)"),
        ("base", "torch.ones(n, device=device)", "torch.ones(n)"),
        ("base", "def moved(self, x):", "def moved_away(self, x):"),
        ("deep", "class Deep(torch.nn.Module)", "class Deep"),
    ],
)
def test_who_asked_for_what_has_changed_is_judged_again(
    package: Package, name: str, before: str, after: str
) -> None:
    package.edit(name, before, after)
    assert "model" in package.judged()
    assert package.judged() == set()


def test_a_file_that_an_answer_newly_rests_on_counts_from_then_on(package: Package) -> None:
    """`helper` says the same by another file's method; later that method says something else."""
    package.edit("base", "        return torch.zeros(count)\n", "        return self.make(count)\n")
    package.judged()
    package.edit("deep", "return torch.zeros(n)", "return n")
    assert {"deep", "base", "model"} <= package.judged()


def test_facts_that_change_and_change_back_are_followed(package: Package) -> None:
    package.edit("base", "torch.zeros(count)", "count")
    assert "model" in package.judged()
    package.edit("base", "return count", "return torch.zeros(count)")
    assert "model" in package.judged()
    package.edit("base", "count = n + 1", "count = n")
    assert package.judged() == {"base"}


def test_of_who_asked_the_same_file_only_those_who_need_all_of_it_are_judged_again(
    package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, file = str(package.folder / "base.py"), Judge.file

    def resting(self_: Judge, path: str, data: bytes, rules: Sequence[Listed]) -> FileResult:
        result = file(self_, path, data, rules)
        is_quiet = Path(path).stem == "quiet"
        return result._replace(needs=(*result.needs, all_of(base))) if is_quiet else result

    monkeypatch.setattr(Judge, "file", resting)
    package.edit("quiet", "self.weight", "self.weight * 2")
    assert package.judged() == {"quiet"}
    package.edit("base", "import torch\n", "import torch\n# a comment\n")
    assert package.judged() == {"base", "quiet"}
    assert package.judged() == set()


def test_both_of_two_changed_files_are_asked(package: Package) -> None:
    package.edit("base", "count = n + 1", "count = n")
    package.edit("deep", "return torch.zeros(n)", "n += 1\n        return torch.zeros(n)")
    assert package.judged() == {"base", "deep"}
    package.edit("base", "count = n", "count = n + 3")
    package.edit("deep", "class Deep(torch.nn.Module)", "class Deep")
    assert {"base", "deep", "model", "quiet"} == package.judged()


def _spoil(package: Package, asked: object) -> None:
    file, (made_by, known) = package.answers, package.kept()
    for entry in known.values():
        entry[1] = asked
    stored = json.dumps([made_by, known]).encode()
    file.write_bytes(b"%08x\n%b" % (crc32(stored), stored))


@pytest.mark.parametrize(
    "asked",
    [
        {"os:system\t": digest(None)},
        {"tensortrail.analyzer.facts.definitions:Definitions\t": ""},
        {"tensortrail.analyzer.facts.definitions:nothing\t": ""},
        {"": ""},
        {"whole": ""},
        [],
        None,
    ],
)
def test_questions_that_nobody_can_have_asked_make_all_be_judged(
    package: Package, asked: object
) -> None:
    _spoil(package, asked)
    package.edit("base", "count = n + 1", "count = n")
    assert package.judged() == {"base", "model", "quiet"}


LOUD = """import torch
from pkg.base import Base

class Loud(Base):
    def forward(self, x):
        return self.helper(3).to(x.device) + torch.zeros(3) + self.moved(x)
"""


def test_what_is_found_stands_while_nothing_moves_that_it_may_show(package: Package) -> None:
    package.write(loud=LOUD)
    assert package.judged() == {"loud"}
    assert package.found == {"loud"}
    package.edit("base", "    return n + 1\n", "    return n + 1 + 1\n\n# the end\n")
    assert package.judged() == {"base"}
    package.edit("base", "import torch\n", "import torch\n\n")
    assert package.judged() == {"base"}
    assert package.judged() == set()


PAINTERS = """class Painter:
    def first(self):
        if self.final_offload_hook is not None:
            self.unet.to("cpu")

    def second(self):
        if self.final_offload_hook is not None:
            self.unet.to("cpu")
        return self.unet

    def third(self, steps):
        if steps and self.final_offload_hook is not None:
            self.unet.to("cpu")
"""
ALONE = """class Alone:
    def offload(self, steps):
        steps.run(self.unet)
        self.unet.to("cpu")
"""


def test_what_shows_a_line_of_another_file_is_judged_again_when_it_moves(package: Package) -> None:
    package.write(painters=PAINTERS, alone=ALONE)
    package.judged()
    assert "alone" in package.found
    package.edit("painters", "        return self.unet\n", "        return None\n")
    assert package.judged() == {"painters"}
    package.edit("painters", "class Painter:\n", "class Painter:\n\n")
    assert package.judged() == {"alone", "painters"}
    assert package.judged() == set()


COUNTED = """import torch

class Counted(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = torch.nn.Linear(n, n)

    def forward(self, x):
        return self.proj(x) + torch.arange(x.shape[-1])
"""
PROGRAM = """from pkg.counted import Counted

if __name__ == "__main__":
    print(Counted(3))
"""
IMPORTING = """import pkg.counted

DEVICE = "cuda"
"""


def test_who_imports_a_file_is_asked_what_it_imports_and_whether_it_names_a_gpu(
    package: Package,
) -> None:
    package.write(counted=COUNTED, program=PROGRAM, __init__=IMPORTING)
    package.judged()
    assert "DEV521" in package.codes
    asked = {each.partition("\t")[0].partition(":")[2] for each in package.asked("__init__")}
    assert {"imports", "names_accelerator"} <= asked
    assert "whole" not in package.asked("__init__")
    package.edit("__init__", "import pkg.counted", "import pkg.other")
    assert "counted" in package.judged()
    assert "DEV521" not in package.codes
    package.edit("__init__", "import pkg.other", "import pkg.counted")
    assert "counted" in package.judged()
    assert "DEV521" in package.codes
    package.edit("__init__", '"cuda"', '"cpu"')
    assert "counted" in package.judged()
    assert "DEV521" not in package.codes


def test_without_the_answers_all_who_asked_are_judged(package: Package) -> None:
    (package.folder.parent / "cache" / FILE).write_text("nothing")
    package.edit("base", "count = n + 1", "count = n")
    assert package.judged() == {"base", "model", "quiet"}


def test_an_answer_is_the_same_text_in_every_run() -> None:
    places = [Place(Where.OF, each) for each in "abc"]
    assert digest(Held(What.TENSOR, frozenset(places))) == digest(
        Held(What.TENSOR, frozenset(reversed(places)))
    )
    assert digest(Held(What.TENSOR, frozenset(places))) != digest(
        Held(What.TENSOR, frozenset(places[1:]))
    )
