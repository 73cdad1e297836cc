"""What nothing of a project names harms nobody who runs it: a note."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.facts import uses
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.project_gpus import AsksForGpus
from tensortrail.findings import Severity

pytestmark = pytest.mark.usefixtures("as_the_rule_says")


@pytest.fixture(autouse=True)
def _programs_that_may_use_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are a note whoever uses them (`rules/devices/test_cuda_beside_argument.py`)."""
    monkeypatch.setattr(AsksForGpus, "may_use_gpu", lambda self: True)


SCALED = """
import torch
from torch import nn

{above}class Scaled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)

    def forward(self, x):
        return self.mix(x) * torch.linspace(0, 1, 3)
"""

FROM_A = "from net.a import Scaled\n\ndef made():\n    return Scaled(3)\n"
SCALED_TOO = "class Scaled:\n    pass\n"
RUNS_B = "import net.b\n\nprint(net.b)\n"
LISTED = "from net.a import Scaled\n\nMODELS = [Scaled]\n"


def severity(folder: Path, files: dict[str, str], above: str = "") -> Severity:
    for name, text in (
        {"net/__init__.py": "", "net/a.py": SCALED.format(above=above)} | files
    ).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    paths = (str(folder / "net"),)
    request = CheckRequest(paths, codes=frozenset({"DEV521"}), cache_dir=None, jobs=1)
    (found,) = check(request).findings
    return found.severity


@pytest.mark.parametrize(
    "files",
    [
        {"net/b.py": "from net.a import Scaled\nprint(Scaled(3))\n"},
        {"net/b.py": "from net.a import Scaled\n", "train.py": "import net.b\nprint(net.b)\n"},
        {"net/b.py": FROM_A, "train.py": "from net import (\n    b,\n)\nprint(b.made())\n"},
        {"net/b.py": LISTED, "net/c.py": "import importlib\n\nM = importlib.import_module\n"},
        {"setup.py": "", "net/b.py": LISTED, "run.sh": "python -m net.b\n"},
        {"train.py": "from net import a\nmodel = a.Scaled(3)\n"},
        {"pyproject.toml": "", "configs/base.yaml": "target: net.a.Scaled\n"},
        {"setup.py": "", "demos/try.ipynb": '{"cells": ["Scaled(3)"]}'},
        {"setup.py": "", "net/b.py": FROM_A, "run.py": RUNS_B},
    ],
)
def test_what_another_file_names_is_used(tmp_path: Path, files: dict[str, str]) -> None:
    assert severity(tmp_path, files) is Severity.WARNING


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"net/b.py": "class Scaled2: ...  # not Scaled\n"},
        {"setup.py": "", "tests/test_a.py": "from net.a import Scaled\n"},
        {"net/b.py": "from net.a import Scaled\n"},
        {"net/b.py": FROM_A, "net/c.py": "from net.b import made\n"},
        {"net/b.py": LISTED, "net/c.py": "from net.b import MODELS\n"},
        {".git/HEAD": "", "copied/setup.py": "", "net/b.py": FROM_A, "run.py": RUNS_B},
        {"net/b.py": FROM_A, "run.py": RUNS_B},
        {"net/b.py": "from net.z import Scaled\n", "net/z.py": SCALED_TOO, "run.py": RUNS_B},
        {"net/b.py": "from outside import Scaled\n", "run.py": RUNS_B},
        {"net/b.py": SCALED_TOO, "run.py": RUNS_B},
        {"net/b.py": "def made(self):\n    return self.Scaled\n", "run.py": RUNS_B},
    ],
)
def test_what_no_other_file_names_is_a_note(tmp_path: Path, files: dict[str, str]) -> None:
    assert severity(tmp_path, files) is Severity.NOTE


@pytest.mark.parametrize("above", ["@registered\n", "MODELS = ['Scaled']\n\n"])
def test_its_own_file_may_register_it(tmp_path: Path, above: str) -> None:
    assert severity(tmp_path, {}, above) is Severity.WARNING


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"setup.py": ""}, Severity.NOTE),
        ({"LICENSE": ""}, Severity.NOTE),
        (
            {"setup.py": "", "train.py": "from net.a import Scaled\nprint(Scaled(3))\n"},
            Severity.WARNING,
        ),
        (
            {"LICENSE": "", "train/a.py": "from net.a import Scaled\nprint(Scaled(3))\n"},
            Severity.WARNING,
        ),
    ],
)
def test_paths_from_the_top_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: Severity
) -> None:
    severity(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    request = CheckRequest(("net",), codes=frozenset({"DEV521"}), cache_dir=None, jobs=1)
    (found,) = check(request).findings
    assert found.severity is expected


@pytest.mark.parametrize(
    ("below", "other", "expected"),
    [
        ("class Whole:\n    part = Scaled\n", "", Severity.NOTE),
        ("class Whole:\n    part = Scaled\n", "from net.a import Whole\nprint()", Severity.WARNING),
        ("def made():\n    return Scaled(3)\n\nMADE = made()\n", "", Severity.WARNING),
        ("@registered\nclass Whole:\n    part = Scaled\n", "", Severity.WARNING),
    ],
)
def test_what_comes_to_it_in_its_file_has_to_be_named(
    tmp_path: Path, below: str, other: str, expected: Severity
) -> None:
    text = SCALED.format(above="") + "\n\n" + below
    assert severity(tmp_path, {"net/a.py": text, "net/b.py": other}) is expected


CHOSEN = """
import torch

def merged(x: torch.Tensor, weight=None, *, device: torch.device):
    if weight is None:
        return x
    rows = torch.zeros(3, device=device)
    return rows * torch.arange(3) * weight
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("merged(x)", Severity.NOTE),
        ("merged(x, None)", Severity.NOTE),
        ("merged(x, weight=None)", Severity.NOTE),
        ("merged(x, x)", Severity.WARNING),
        ("merged(x, weight=x)", Severity.WARNING),
        ("merged(*x)", Severity.WARNING),
    ],
)
def test_a_parameter_that_no_call_gives(tmp_path: Path, call: str, expected: Severity) -> None:
    other = f"from net.a import merged\n\ndef run(x):\n    return {call}\n\nprint(run)\n"
    assert severity(tmp_path, {"net/a.py": CHOSEN, "net/b.py": other}) is expected


def test_a_script_of_a_project(tmp_path: Path) -> None:
    text = SCALED.format(above="")
    (tmp_path / "demos").mkdir()
    (tmp_path / "setup.py").write_text("")
    (tmp_path / "demos/a.py").write_text(text)
    paths = (str(tmp_path / "demos"),)
    request = CheckRequest(paths, codes=frozenset({"DEV521"}), cache_dir=None, jobs=1)
    assert check(request).findings[0].severity is Severity.NOTE
    (tmp_path / "demos/a.py").write_text(text + "\nprint(Scaled(3))\n")
    assert check(request).findings[0].severity is Severity.WARNING


def test_of_too_much_text_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uses, "_MOST_BYTES", 10)
    assert severity(tmp_path, {}) is Severity.WARNING


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "b.py").write_text("")
    kept = uses.Uses()

    def is_reached() -> bool:
        reach = kept.reach(str(package))
        return reach is not None and reach.of_name("a.py", "Scaled").holds

    assert not is_reached()
    (package / "b.py").write_text("print(a.Scaled(3))")
    kept.forget(str(package / "b.py"))
    assert is_reached()


@pytest.mark.parametrize(
    ("given", "expected"), [("x", Severity.NOTE), ("x, True", Severity.WARNING)]
)
def test_a_static_method_may_never_be_asked_for_it(
    tmp_path: Path, given: str, expected: Severity
) -> None:
    text = f"""
import torch
from torch import nn

class Shifted(nn.Module):
    @staticmethod
    def _shift(x, lower=False):
        if lower:
            x = x * torch.ones(x.size(0), x.size(1))
        return x

    def forward(self, x):
        return self._shift({given})
"""
    assert (
        severity(
            tmp_path,
            {"net/a.py": text, "net/b.py": "from net.a import Shifted\n\nprint(Shifted())"},
        )
        is expected
    )


SWITCHED = """
import torch
from torch import nn

class Shifted(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.soft, self.mix = VALUE, nn.Linear(n, n)
        self.soft = VALUE

    def forward(self, x):
        if self.soft:
            return self.mix(x) * torch.linspace(0, 1, 3)
        return x
"""


@pytest.mark.parametrize(
    ("value", "other", "expected"),
    [
        ("False", "Shifted(3)", Severity.NOTE),
        ("False", "Shifted(3).soft = True", Severity.WARNING),
        ("n > 3", "Shifted(3)", Severity.WARNING),
    ],
)
def test_what_a_class_switches_off(
    tmp_path: Path, value: str, other: str, expected: Severity
) -> None:
    text = SWITCHED.replace("VALUE", value)
    text = text.replace(f"self.soft, self.mix = {value}, nn.Linear", "self.mix = nn.Linear")
    files = {"net/a.py": text, "net/b.py": "from net.a import *\n" + other}
    assert severity(tmp_path, files) is expected


SWITCHED_OFF = SWITCHED.replace("self.soft, self.mix = VALUE, ", "self.mix = ").replace(
    "VALUE", "False"
)
MAKES = "from net.a import Shifted\n\nprint(Shifted(3))\n"
UNDER_IS_CUDA = """
import torch

def shifted(x: torch.Tensor):
    y = torch.zeros(3)
    if x.is_cuda:
        y = y.cuda()
    return x + y


def where(x):
    return shifted(x), x.device
"""


@pytest.mark.parametrize(
    ("code", "text", "added", "expected"),
    [
        (
            "DEV521",
            SCALED.format(above=""),
            "from net.a import Scaled\nprint()\n",
            Severity.WARNING,
        ),
        ("DEV521", SWITCHED_OFF, "SHIFTED.soft = True\n", Severity.WARNING),
        ("DEV538", UNDER_IS_CUDA, "from net.a import where\nwhere('cuda:1')\n", Severity.WARNING),
    ],
)
@pytest.mark.parametrize("first_alone", [False, True])
def test_a_cached_note_ends_where_a_file_is_added(
    tmp_path: Path, code: str, text: str, added: str, expected: Severity, first_alone: bool
) -> None:
    def found(*names: str) -> set[Severity]:
        paths = tuple(str(tmp_path / each) for each in names)
        cache = str(tmp_path / ".cache")
        request = CheckRequest(paths, codes=frozenset({code}), cache_dir=cache, jobs=1)
        return {each.severity for each in check(request).findings}

    files = {"net/__init__.py": "", "net/a.py": text, "net/b.py": "", "net/c.py": MAKES}
    _written(tmp_path, {"setup.py": ""} | files)
    assert found("net") == {Severity.NOTE}
    _written(tmp_path, {"net/b.py": "import torch\n" + added})
    if first_alone:
        assert not found("net/b.py")
    assert found("net") == {expected}


CALLED = """
import torch
from torch import nn

class Net(BASES):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)

    def weighted(self, x: torch.Tensor):
        return self.mix(x) * torch.linspace(0, 1, 3)

    def twice(self, x: torch.Tensor):
        return self.weighted(x) + x
"""
RUNS_NET = "from net.a import Net\n\nnet = Net(3)\nprint(net(3))\n"


@pytest.mark.parametrize(
    ("bases", "files", "expected"),
    [
        ("nn.Module", {}, Severity.NOTE),
        ("nn.Module", {"net/b.py": "def weighted(x):\n    return x\n\nprint()\n"}, Severity.NOTE),
        ("nn.Module", {"net/b.py": "def run(net):\n    return net.twice(3)\n"}, Severity.NOTE),
        ("nn.Module", {"net/b.py": "print(NET.weighted(3))\n"}, Severity.WARNING),
        ("nn.Module", {"net/b.py": "print(NET.twice(3))\n"}, Severity.WARNING),
        ("nn.Module", {"net/b.py": "print(getattr(NET, 'twice'))\n"}, Severity.WARNING),
        ("pl.LightningModule", {}, Severity.WARNING),
        ("Base", {"net/b.py": "class Base(nn.Module):\n    pass\n"}, Severity.NOTE),
        ("Base", {"net/b.py": "class Base(pl.LightningModule):\n    pass\n"}, Severity.WARNING),
        ("nn.Module", {"net/b.py": "class Run(Net, pl.LightningModule): ...\n"}, Severity.WARNING),
        (
            "nn.Module",
            {"setup.py": "", "net/__init__.py": "from net.a import Net"},
            Severity.WARNING,
        ),
    ],
)
def test_a_method_that_nothing_calls(
    tmp_path: Path, bases: str, files: dict[str, str], expected: Severity
) -> None:
    text = CALLED.replace("BASES", bases)
    assert severity(tmp_path, {"net/a.py": text, "run.py": RUNS_NET} | files) is expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"net/b.py": LISTED}, {"net/c.py": "import net.b\n\nprint(net.b)\n"}),
        ({"net/b.py": FROM_A}, {"net/b.py": FROM_A + "\nprint(made())\n"}),
        ({"net/b.py": FROM_A, "net/c.py": "import net.b\n"}, {"net/c.py": "net.b.made()\n"}),
        ({"net/b.py": LISTED}, {"net/c.py": "import importlib\n\nimportlib.import_module\n"}),
        ({"scripts/b.py": FROM_A}, {"scripts/b.py": FROM_A + "\nprint(made())\n"}),
    ],
)
def test_a_cached_answer_ends_where_the_chain_does(
    tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    def found() -> set[Severity]:
        cache = str(tmp_path / ".cache")
        paths = (str(tmp_path / "net"),)
        request = CheckRequest(paths, codes=frozenset({"DEV521"}), cache_dir=cache, jobs=1)
        return {each.severity for each in check(request).findings}

    files = {"setup.py": "", "net/__init__.py": "", "net/a.py": SCALED.format(above="")}
    _written(tmp_path, files | {"net/c.py": ""} | before)
    assert found() == {Severity.NOTE}
    _written(tmp_path, after)
    assert found() == {Severity.WARNING}
    _written(tmp_path, {"net/c.py": ""} | before)
    assert found() == {Severity.NOTE}


def _written(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        stamp = path.stat().st_mtime_ns - 5_000_000
        os.utime(path, ns=(stamp, stamp))


@pytest.mark.parametrize(
    ("flag", "branch", "expected"),
    [
        ("False", "if FAST:\n        return Scaled(3)", Severity.NOTE),
        ("True", "if FAST:\n        return Scaled(3)", Severity.WARNING),
        ("False", "if FAST:\n        pass\n    else:\n        return Scaled(3)", Severity.WARNING),
        ("False\nFAST = make", "if FAST:\n        return Scaled(3)", Severity.WARNING),
    ],
)
def test_a_class_that_is_made_under_a_constant(
    tmp_path: Path, flag: str, branch: str, expected: Severity
) -> None:
    text = (
        f"from net.a import Scaled\n\ndef make():\n    {branch}\n\nFAST = {flag}\nprint(make())\n"
    )
    assert severity(tmp_path, {"net/b.py": text}) is expected
