"""True findings of which nothing comes, beside what differs in one word and is worth acting on."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.devices.test_on_the_cpu import findings, severity

HEAD = "import torch\nfrom torch import nn\n\n\n"
READ = (
    HEAD + "class Steps(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.proj = nn.Linear(n, n)\n        self.steps = torch.ones(n)\n\n"
    "    def forward(self, x):\n        y = self.proj(x)\n        {use}\n        return y\n"
)
MADE = (
    HEAD + "class Batch(nn.Module):\n    def build(self, n, device):\n"
    "        sizes = torch.zeros(n, 2, device=device)\n"
    "        {name} = torch.zeros(n, 2)\n        return self.net(sizes, {name})\n"
)
AGAIN = (
    "import torch\n\n\ndef move(x, device, {name}=None):\n    if isinstance(x, list):\n"
    "        return [move(each, device) for each in x]\n    return x.to(device, {name}={name})\n"
)
LOST = (
    HEAD + "class Scale(nn.Module):\n    def __init__(self, n, {given}):\n"
    "        super().__init__()\n        self.scale = nn.Parameter(torch.ones(n)).to(device)\n"
)
LISTED = (
    HEAD + "class Layer(nn.Module):\n    def __init__(self, weights):\n        super().__init__()\n"
    "        self.weight = {weight}\n\n    def forward(self, x):\n        return x * self.weight\n"
    "\n\n"
    "class Stack(nn.Module):\n    def __init__(self, weights):\n        super().__init__()\n"
    "        self.layers = [Layer(each) for each in weights]\n\n"
    "    def forward(self, x):\n        for layer in self.layers:\n            x = layer(x)\n"
    "        return x\n"
)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("y = y * self.steps", Severity.WARNING),
        ("y = y * int(self.steps.max())", None),
        ("y = y if self.steps[0] > 1 else x", None),
        ("self.steps[:-1].uniform_()", None),
        ("y = y * x.steps", None),
    ],
)
def test_an_attribute_that_is_read_as_a_number(use: str, expected: Severity | None) -> None:
    assert severity("DEV530", READ.format(use=use)) is expected


@pytest.mark.parametrize(("name", "expected"), [("rows", True), ("rows_cpu", False)])
@pytest.mark.parametrize("code", ["DEV534", "DEV541"])
def test_a_name_that_says_cpu(code: str, name: str, expected: bool) -> None:
    found = severity(code, MADE.format(name=name))
    assert found in ((Severity.WARNING,) if expected else (Severity.NOTE, None))


@pytest.mark.parametrize(
    ("name", "expected"), [("dtype", Severity.WARNING), ("non_blocking", Severity.NOTE)]
)
def test_an_option_lost_in_recursion(name: str, expected: Severity) -> None:
    assert severity("DEV548", AGAIN.format(name=name)) is expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [("device", Severity.WARNING), ("other_device, device", Severity.NOTE)],
)
def test_a_parameter_for_one_of_two_devices(given: str, expected: Severity) -> None:
    assert severity("DEV545", LOST.format(given=given)) is expected


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ("nn.Parameter(torch.ones(3))", Severity.ERROR),
        ("nn.Parameter(weights.read('scale'))", Severity.NOTE),
    ],
)
def test_layers_that_take_their_weights(weight: str, expected: Severity) -> None:
    assert severity("DEV544", LISTED.format(weight=weight)) is expected


TABLE = (
    HEAD + "class Positions(nn.Embedding):\n    def fill(self, n, dim):\n"
    "        rows = self.table(n, dim)\n"
    "        self.weight = nn.Parameter(rows.to(self.weight.device))\n\n"
    "    @staticmethod\n    def table(n, dim):\n        half = dim // 2\n"
    "        {number} = 3.0 / (half - 1)\n"
    "        rows = torch.exp(torch.arange(half) * -{number})\n        if dim % 2 == 1:\n"
    "            rows = torch.cat([rows, torch.zeros(n, 1)], dim=1)\n        return rows\n\n"
    "    def forward(self, ids):\n        self.fill(4, self.embedding_dim)\n"
    "        return super().forward(ids)\n"
)


@pytest.mark.parametrize("number", ["step", "rows"])
def test_a_number_whose_name_is_bound_to_a_tensor_later(number: str) -> None:
    assert not findings("DEV521", TABLE.format(number=number))


SHOWN = (
    "import torch\n\n\ndef scores(model, paths, device):\n    rows = []\n    for path in paths:\n"
    "        row = torch.tensor(model.read(path))\n        row.to(device)\n"
    "        rows.append(row)\n    rows = torch.cat(rows)\n    return {last}\n"
)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("rows", Severity.ERROR),
        ("rows.cpu().numpy()", Severity.ERROR),
        ("rows.numpy()", Severity.NOTE),
    ],
)
def test_a_lost_move_of_what_numpy_reads(last: str, expected: Severity) -> None:
    assert severity("DEV504", SHOWN.format(last=last)) is expected


OF_META = (
    "import torch\n\n\ndef convert(model: torch.nn.Linear):\n"
    "    if model.weight.device {sign} 'meta':\n        {step}\n"
)


@pytest.mark.parametrize(
    ("sign", "step", "expected"),
    [
        ("!=", "model.weight.data = torch.nn.functional.normalize(model.weight)", Severity.NOTE),
        ("!=", "model.scale = model.weight.max().item()", Severity.ERROR),
        ("==", "model.weight.data = torch.zeros(4, 4)", Severity.ERROR),
    ],
)
def test_what_is_computed_on_meta_too(sign: str, step: str, expected: Severity) -> None:
    assert severity("DEV501", OF_META.format(sign=sign, step=step)) is expected
