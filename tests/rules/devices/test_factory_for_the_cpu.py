"""DEV521, `factory-without-device`: code that is for the CPU, or that nothing brings to a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import (
    HEAD,
    severities_in_project,
    severity,
    severity_in_package,
)

CHUNKED = (
    HEAD + "class Head(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.weight = nn.Parameter(torch.ones(n, n))\n\n"
    "    def forward(self, x):\n        if {asked}:\n            return self.by_parts(x)\n"
    "        return x @ self.weight\n\n"
    "    def by_parts(self, x):\n        found = torch.zeros(len(x), 3)\n"
    "        return found + x @ self.weight\n"
)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("len(x) > 3", Severity.WARNING),
        ("self.weight.device.type == 'cpu' and len(x) > 3", Severity.NOTE),
        ("self.weight.device.type != 'cpu'", Severity.WARNING),
        ("not x.is_cuda", Severity.NOTE),
    ],
)
def test_a_method_for_the_cpu(asked: str, expected: Severity) -> None:
    assert severity("DEV521", CHUNKED.format(asked=asked)) is expected


@pytest.mark.parametrize(
    ("default", "call", "expected"),
    [
        ("torch.device('cpu')", "Buffer(3)", Severity.NOTE),
        ("'cpu'", "Buffer(3)", Severity.NOTE),
        ("'cpu'", "Buffer(3, device=chosen)", Severity.WARNING),
        ("None", "Buffer(3)", Severity.WARNING),
    ],
)
def test_a_device_that_is_the_cpu_unless_somebody_gives_one(
    default: str, call: str, expected: Severity
) -> None:
    source = (
        "import torch\n\nclass Buffer:\n"
        f"    def __init__(self, n, device={default}):\n        self.device = device\n"
        "        self.rows = torch.empty(n, 4)\n\n    def add(self, x: torch.Tensor):\n"
        "        return torch.cat([self.rows, x.to(self.device)])\n\n"
        f"def run(chosen):\n    return {call}\n"
    )
    assert severity("DEV521", source) is expected


NOTE, ERROR = Severity.NOTE, Severity.ERROR


GREATER = (
    "import torch\n\n\nclass Codec:\n    def __init__(self, cuda=False):\n"
    "        self.cuda = cuda\n\n    def over(self, x):\n        r = torch.rand(x.size())\n"
    "        if self.cuda:\n            r = r.cuda()\n        return x > r\n"
)


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ("codec = Codec()\nx = torch.randn(9)\nprint(codec.over(x))\n", NOTE),
        ("x = torch.randn(9)\nprint(x > torch.rand(9).cuda())\n", ERROR),
    ],
)
def test_what_a_callee_puts_on_a_gpu(tmp_path: Path, used: str, expected: Severity) -> None:
    run = f"import torch\n\nfrom net.codec import Codec\n\n{used}"
    assert severities_in_project(tmp_path, {"codec.py": GREATER, "run.py": run}, "DEV521") == [
        expected
    ]


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


@pytest.mark.usefixtures("as_the_rule_says")
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
@pytest.mark.parametrize("code", ["DEV521", "NEW305"])
def test_a_program_that_may_use_a_gpu(
    tmp_path: Path, code: str, files: dict[str, str], is_told: bool
) -> None:
    main = "from pkg.own import Placed\n\nprint(Placed())\n"
    found = severity_in_package(tmp_path, code, PLACED, **{"main": main, **files})
    assert found is (Severity.WARNING if is_told else Severity.NOTE)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("self._moved(y)", Severity.NOTE),
        ("self._moved(y, False)", Severity.WARNING),
        ("self._moved(y, cut=False)", Severity.NOTE),
        ("self._moved(y, cut=x)", Severity.WARNING),
        ("self._moved(y, **x)", Severity.WARNING),
        ("other._moved(y)", Severity.WARNING),
        ("y", Severity.WARNING),
    ],
)
def test_what_is_done_on_request_and_never_asked_for(call: str, expected: Severity) -> None:
    source = f"""
import torch

class Shift(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = torch.nn.Linear(n, n)

    def _moved(self, y, cut=False):
        z = self.mix(y)
        if cut:
            z = z * torch.linspace(0, 1, 3)
        return z

    def forward(self, x: torch.Tensor, y, other):
        return {call}
"""
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("device", "expected"), [("cpu", Severity.NOTE), ("cuda", Severity.WARNING)]
)
def test_a_script_that_names_the_cpu_alone(device: str, expected: Severity) -> None:
    source = f"""
import torch
device = "{device}"
x = torch.ones(3, device=device)
print(x * torch.arange(3))
"""
    assert severity("DEV521", source) is expected


IN_FORWARD = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)

    def forward(self, x):
        return self.mix(x) * torch.ones(3)
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [("package/model.py", Severity.WARNING), ("tutorials/model.py", Severity.NOTE)],
)
def test_a_tutorial_that_says_nothing_of_devices(path: str, expected: Severity) -> None:
    assert severity("DEV521", IN_FORWARD, path) is expected


def test_numpy_of_an_argument_is_a_sign_of_the_cpu() -> None:
    source = IN_FORWARD.replace(
        "        return", "        first = x.detach().numpy()[0]\n        return first *"
    )
    assert severity("DEV521", source) is Severity.NOTE


@pytest.mark.parametrize("asked", ["is_fx_proxy(x)", "torch.onnx.is_in_onnx_export()"])
def test_a_branch_for_tracing(asked: str) -> None:
    source = IN_FORWARD.replace("        return", f"        if {asked}:\n            return")
    assert severity("DEV521", source) is Severity.NOTE


@pytest.mark.parametrize(
    ("path", "expected"),
    [("package/transforms/pairs.py", Severity.NOTE), ("package/pairs.py", Severity.WARNING)],
)
def test_modules_among_transforms_prepare_data(path: str, expected: Severity) -> None:
    source = """
    import torch
    from torch import nn

    class Centred(nn.Module):
        def forward(self, rows: torch.Tensor):
            return rows + torch.ones(3)
    """
    assert severity("DEV521", source, path) is expected


def test_nothing_says_that_a_plain_function_works_on_gpus() -> None:
    source = """
    import torch

    def step(helper, x):
        steep = helper.slopes(x) @ helper.bends(x)
        return steep + torch.ones(steep.shape[0], dtype=steep.dtype)
    """
    assert severity("DEV521", source) is None
