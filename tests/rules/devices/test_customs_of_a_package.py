"""What the code around a finding is used to makes a note of a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.findings import Severity

pytestmark = pytest.mark.usefixtures("as_the_rule_says")

WRITTEN = """
import torch
from torch import nn

class Padded(nn.Module):
    def forward(self, x):
        blank = torch.ones(len(x), 3).cuda()
        return torch.cat([x, blank], 1), x.device
"""
KEPT = """
import torch
from torch import nn

class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.scale = torch.arange(3)

    def forward(self, x: torch.Tensor):
        return x * self.scale
"""
TABLE = """
import torch

def table(n, device=None):
    return torch.rand(n).outer(torch.rand(n))
"""
TWICE = """
def train(rows, device=None, engine="a"):
    if engine == "a":
        from pkg.first import run
        return run(rows)
    from pkg.second import run
    return run(rows, device=device)
"""


def severity(folder: Path, code: str, source: str, **others: str) -> Severity | None:
    package = folder / "pkg"
    package.mkdir()
    files = {
        "__init__": "",
        "own": source,
        "main": "from pkg.own import Padded, Gate\n\nprint(Padded, Gate)\n",
        **others,
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    asked = CheckRequest(paths=(str(package / "own.py"),), cache_dir=None, codes=frozenset({code}))
    found = check(asked).findings
    return found[0].severity if found else None


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("def place(net, rows):\n    return net.cuda(), rows.cuda()\n", Severity.NOTE),
        ("def place(net, rows, device):\n    return net.to(device), rows.cuda()\n" * 9,
         Severity.NOTE),
        ("def place(net, rows, device):\n    return net.to(device), rows.to(device)\n" * 9,
         Severity.WARNING),
        ("", Severity.WARNING),
        (None, Severity.NOTE),
    ],
)  # fmt: skip
def test_a_package_for_the_current_gpu(
    tmp_path: Path, other: str | None, expected: Severity
) -> None:
    main = "from pkg.own import Padded\n\nnet = Padded()\n"
    if other is not None:
        main += 'net.to("cuda" if GPU else "cpu")\n'
    assert severity(tmp_path, "DEV538", WRITTEN, main=main, other=other or "") is expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("def load(device):\n    with torch.device(device):\n        return Gate()\n",
         Severity.NOTE),
        ("def load(target_device):\n    with target_device:\n        return Gate()\n",
         Severity.NOTE),
        ("def load():\n    with torch.device('meta'):\n        return Gate()\n", Severity.WARNING),
        ("def load(device):\n    return Gate().to(device)\n", Severity.WARNING),
        ("from pkg.own import Gate\ntorch.set_default_device('cuda')\n", Severity.NOTE),
        ("from pkg.own import Padded\ntorch.set_default_device('cuda')\n", Severity.WARNING),
    ],
)  # fmt: skip
@pytest.mark.parametrize("code", ["OFF107", "DEV525"])
def test_where_modules_are_built(tmp_path: Path, code: str, other: str, expected: Severity) -> None:
    assert severity(tmp_path, code, KEPT, other=other) is expected


PLACED = """
import torch
from torch import nn

class Placed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor):
        return self.mix(x) + torch.arange(8)
"""
BETWEEN = "from pkg.own import Placed\n\ndef net():\n    return Placed()\n"


@pytest.mark.parametrize(
    ("files", "is_told"),
    [
        ({}, False),
        ({"train": "from pkg.own import Placed\n\nnet = Placed().cuda()\n"}, True),
        ({"nets": BETWEEN, "train": "import pkg.nets\n\nnet = pkg.nets.net().to('mps')\n"},
         True),
        ({"nets": BETWEEN, "train": "from transformers import Trainer\n"
          "from pkg.nets import net\n\nTrainer(net())\n"}, True),
        ({"train": "from pkg.own import Placed\n\n# net = Placed().cuda()\n"}, False),
        ({f"net{n}": "from pkg.own import Placed\n" for n in range(60)}, False),
        ({"train": "import torch\n\nx = torch.ones(2).cuda()\n"}, False),
        ({"train": "from pkg.own import Placed\nimport torch\n"
          "torch.set_default_device('cuda')\nprint(Placed())\n"}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("code", "loud"), [("DEV521", Severity.WARNING), ("NEW305", Severity.ERROR)]
)
def test_a_program_that_may_use_a_gpu(
    tmp_path: Path, code: str, loud: Severity, files: dict[str, str], is_told: bool
) -> None:
    main = "from pkg.own import Placed\n\nprint(Placed())\n"
    found = severity(tmp_path, code, PLACED, **{"main": main, **files})
    assert found is (loud if is_told else Severity.NOTE)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("table(3)", Severity.NOTE),
        ("table(3, x.device)", Severity.WARNING),
        ("table(3, device=x.device)", Severity.WARNING),
        ("table(*x)", Severity.WARNING),
        ("x", Severity.WARNING),
    ],
)
def test_a_device_that_no_caller_passes(tmp_path: Path, call: str, expected: Severity) -> None:
    other = f"from pkg.own import table\n\ndef use(x):\n    return {call}\n\nprint(use(ROWS))\n"
    assert severity(tmp_path, "DEV527", TABLE, other=other) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [("table(3)", Severity.NOTE), ("table(3, device=x.device)", Severity.WARNING)],
)
def test_another_function_of_that_name(tmp_path: Path, call: str, expected: Severity) -> None:
    """Calls of either count: which of them is meant is not asked."""
    other, main = f"{TABLE}\ndef use(x):\n    return {call}\n", "from pkg.own import table\n"
    found = severity(tmp_path, "DEV527", TABLE, other=other, main=f"{main}\nprint(table)\n")
    assert found is expected


def test_the_nearest_import_says_what_a_name_is() -> None:
    module = PythonModule("own.py", TWICE.encode(), open_project())
    found = [module.qualified(each.func) for each in module.calls("run")]
    assert found == ["pkg.first.run", "pkg.second.run"]


MASK = """
import torch

def mask(lengths: torch.Tensor, longest: int):
    numbers = torch.arange(longest)
    if lengths.is_cuda:
        numbers = numbers.cuda()
    return numbers < lengths.unsqueeze(1)
"""


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("import torch\ndevice = torch.device('cuda:0')\n", Severity.NOTE),
        ("import torch\n# not 'cuda:1'\n", Severity.NOTE),
        ("import torch\ndevice = torch.device('cuda:1')\n", Severity.WARNING),
        ("def of(rank):\n    return f'cuda:{rank}'\n", Severity.WARNING),
        ("def of(rank):\n    return 'cuda:' + str(rank)\n", Severity.WARNING),
        ("def of(rank):\n    return 'cuda:%d' % rank\n", Severity.WARNING),
        ("import torch\n\ndef of(i):\n    return torch.device('cuda', i)\n", Severity.WARNING),
    ],
)
def test_a_project_that_names_another_gpu(tmp_path: Path, other: str, expected: Severity) -> None:
    used = "from pkg.masked import mask\n\nprint(mask)\n"
    assert severity(tmp_path, "DEV538", MASK, other=other, used=used) is expected


ASKED = """
import torch

def mask(lengths: torch.Tensor, longest: int):
    numbers = torch.arange(longest)
    if lengths.is_cuda:
        numbers = numbers.cuda()
    return numbers < lengths.unsqueeze(1)
"""
NUMBERED = "import torch\n{imports}\n\ndef place(net, rank):\n    return net.to(f'cuda:{{rank}}')\n"


@pytest.mark.parametrize(
    ("where", "imports", "expected"),
    [
        ("other/trainer.py", "from other import model", Severity.NOTE),
        ("other/trainer.py", "from audio.length import mask", Severity.WARNING),
        ("other/trainer.py", "from audio.nets import Net", Severity.WARNING),
        ("audio/trainer.py", "", Severity.WARNING),
    ],
)
def test_another_gpu_is_named_in_the_same_program(
    tmp_path: Path, where: str, imports: str, expected: Severity
) -> None:
    files = {
        "LICENSE": "",
        "audio/length.py": ASKED,
        "audio/nets.py": "from audio.length import mask\n\ndef padded(x):\n    return mask(x, 3)\n",
        where: NUMBERED.format(imports=imports),
        "run.py": "from audio.nets import padded\n\nprint(padded)\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    own = str(tmp_path / "audio" / "length.py")
    asked = CheckRequest(paths=(own,), cache_dir=None, codes=frozenset({"DEV538"}))
    (found,) = check(asked).findings
    assert found.severity is expected
    assert (f"line 5 of {where} names" in found.message) is (expected is Severity.WARNING)
