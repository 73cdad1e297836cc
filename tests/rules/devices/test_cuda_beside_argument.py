"""DEV538, `cuda-beside-argument`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.findings import Severity
from tests.rules.judged import severity, severity_in_package

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
ELSEWHERE = (
    "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n        self.w = torch.nn.Linear(3, 3)\n\n"
    "    def forward(self, x):\n        return self.w(x) + torch.zeros(3).cuda()\n\n\n"
    "def run(device):\n    net = Net().to(device)\n    return net(torch.zeros(3).to(device))\n\n\n"
)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        ('"cpu"', WARNING), ('"cuda:1"', WARNING), ('torch.device("cpu")', WARNING),
        ('"cuda"', NOTE), ('"cuda:0"', NOTE), ("chosen", NOTE),
    ],
)  # fmt: skip
def test_a_written_gpu_in_a_file_that_runs_elsewhere(device: str, expected: Severity) -> None:
    assert severity("DEV538", f"{ELSEWHERE}run({device})\n") is expected


WRITTEN = """
import torch
from torch import nn

class Padded(nn.Module):
    def forward(self, x):
        blank = torch.ones(len(x), 3).cuda()
        return torch.cat([x, blank], 1), x.device
"""


@pytest.mark.usefixtures("as_the_rule_says")
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
    assert (
        severity_in_package(tmp_path, "DEV538", WRITTEN, main=main, other=other or "") is expected
    )


MASK = """
import torch

def mask(lengths: torch.Tensor, longest: int):
    numbers = torch.arange(longest)
    if lengths.is_cuda:
        numbers = numbers.cuda()
    return numbers < lengths.unsqueeze(1)
"""


@pytest.mark.usefixtures("as_the_rule_says")
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
    assert severity_in_package(tmp_path, "DEV538", MASK, other=other, used=used) is expected


ASKED = """
import torch

def mask(lengths: torch.Tensor, longest: int):
    numbers = torch.arange(longest)
    if lengths.is_cuda:
        numbers = numbers.cuda()
    return numbers < lengths.unsqueeze(1)
"""
NUMBERED = "import torch\n{imports}\n\ndef place(net, rank):\n    return net.to(f'cuda:{{rank}}')\n"


@pytest.mark.usefixtures("as_the_rule_says")
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


def test_a_file_for_the_current_gpu_alone() -> None:
    source = """
    import torch
    from torch import nn

    class Placed(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.place = nn.Embedding(n, n)

        def forward(self, x):
            return x + self.place(torch.arange(len(x)).cuda())
    """
    other = source + "\n    def blank(x):\n        return torch.zeros(3, device=x.device)\n"
    assert severity("DEV538", source) is Severity.NOTE
    assert severity("DEV538", other) is Severity.WARNING


BROUGHT = (
    "import torch\n\n\ndef _order(codes):\n"
    "    steps = torch.arange(8).cuda()\n    return codes + steps + codes.new_zeros(1)\n\n\n"
    "def unpack(codes, bits, device):\n    print(codes.device)\n    codes = {brought}\n"
    "    return _order(codes.to(torch.int16 if bits == 8 else torch.int8))\n"
)


@pytest.mark.parametrize(("brought", "expected"), [("codes.cuda()", False), ("codes", True)])
def test_what_every_caller_brings_to_the_gpu(brought: str, expected: bool) -> None:
    found = severity("DEV538", BROUGHT.format(brought=brought))
    assert (found is not None) is expected or found is Severity.NOTE


@pytest.mark.parametrize(
    ("other", "expected"),
    [("def begin(rank):\n    torch.cuda.set_device(rank)\n", NOTE), ("", WARNING)],
)
def test_far_below_the_file_that_sets_the_gpu_of_each_process(
    tmp_path: Path, other: str, expected: Severity
) -> None:
    folder = tmp_path
    for name in ("net", "parts", "model", "backbone", "transformer", "layers"):
        folder = folder / name
        folder.mkdir()
        (folder / "__init__.py").write_text("")
    (tmp_path / "net" / "ranks.py").write_text(f"import torch\n\n\n{other}")
    (folder / "padded.py").write_text(f'{ELSEWHERE}run("cpu")\n')
    request = CheckRequest(
        paths=(str(folder / "padded.py"),), cache_dir=None, codes=frozenset(("DEV538",))
    )
    assert [each.severity for each in check(request).findings] == [expected]
