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


BEHIND = (
    "import torch\n\n\ndef batch(rows, device):\n    return torch.stack(rows).to(device)\n\n\n"
    "def update(rows, device):\n    {first}\n    return batch(rows)\n"
)


@pytest.mark.parametrize(
    ("first", "expected"),
    [("print(device)", Severity.ERROR), ("raise NotImplementedError", Severity.NOTE)],
)
def test_what_nothing_comes_to(first: str, expected: Severity) -> None:
    assert severity("DEV595", BEHIND.format(first=first)) is expected


HEADS = (
    HEAD + "class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.base = nn.Linear(n, n)\n        self.head = nn.Linear(n, 1)\n"
    "        self.parts = self.base, nn.Linear(n, 1)\n\n"
    "    def groups(self):\n        {first}\n        return [p.weight for p in self.parts]\n\n"
    "    def forward(self, x):\n        return self.parts[{place}](x)\n"
)


@pytest.mark.parametrize(
    ("first", "place", "expected"),
    [
        ("self.parts = self.parts[0], self.head", 0, None),
        ("self.parts = self.parts[0], self.head", 1, Severity.ERROR),
        ("print(self.head)", 0, Severity.ERROR),
    ],
)
def test_a_container_that_is_replaced_before_it_is_read(
    first: str, place: int, expected: Severity | None
) -> None:
    assert severity("DEV544", HEADS.format(first=first, place=place)) is expected


MOVED = (
    "import torch\n\n\nclass Codes:\n    def __init__(self, codes: torch.nn.Parameter):\n"
    "        assert codes.dtype {said}\n        self.codes = codes\n\n"
    "    def to(self, device):\n        moved = self.codes.to(device)\n"
    "        if moved.data_ptr() == self.codes.data_ptr():\n            return self\n"
    "        return Codes(moved)\n"
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [("== torch.uint8", Severity.NOTE), ("== torch.float32", Severity.ERROR)],
)
def test_a_tensor_that_has_to_be_of_whole_numbers(said: str, expected: Severity) -> None:
    assert severity("STO201", MOVED.format(said=said)) is expected


SCALED = (
    HEAD + "class Run:\n    def step(self, loss):\n        with self.model.{context}():\n"
    "            loss.backward()\n\n    def scale(self, factor: torch.Tensor):\n"
    "        for p in self.model.parameters():\n            p.grad.mul_(factor)\n"
)


@pytest.mark.parametrize(
    ("context", "expected"), [("no_sync", Severity.NOTE), ("timed", Severity.WARNING)]
)
def test_each_process_has_one_gpu(context: str, expected: Severity) -> None:
    assert severity("DEV565", SCALED.format(context=context)) is expected


ASKS = (
    "import torch\n\n\ndef kernel_for(device='cuda'):\n    device = torch.device(device)\n"
    "    return {body}\n\n\n"
    "def load(net, device):\n    net.to(device)\n    return kernel_for()\n{other}"
)


@pytest.mark.parametrize(
    ("body", "other", "expected"),
    [
        ("torch.cuda.get_device_capability(device)", "", Severity.NOTE),
        ("torch.zeros(3, device=device)", "", Severity.WARNING),
        (
            "torch.cuda.get_device_capability(device)",
            "\n\ndef load_on(spot):\n    return kernel_for(device=spot)\n",
            Severity.WARNING,
        ),
    ],
)
def test_a_function_that_only_asks_what_a_gpu_can_do(
    body: str, other: str, expected: Severity
) -> None:
    assert severity("DEV550", ASKS.format(body=body, other=other)) is expected


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


OTHER = (
    "import torch\nimport warp\n\n\ndef as_array(x: torch.Tensor | warp.array, device):\n"
    "    if isinstance(x, {cls}):\n        return x.numpy()\n    return x.to(device)\n"
)


@pytest.mark.parametrize(
    ("cls", "expected"), [("warp.array", None), ("torch.Tensor", Severity.NOTE)]
)
def test_an_array_of_another_library(cls: str, expected: Severity | None) -> None:
    assert severity("DEV503", OTHER.format(cls=cls)) is expected


LOOK = (
    "import torch\n\n\ndef look(points, up={usual}):\n    if isinstance(up, list):\n"
    "        up = torch.tensor(up, device=points.device)\n    elif torch.is_tensor(up):\n"
    "        up.to(points.device)\n    return points + up\n"
)


@pytest.mark.parametrize(
    ("usual", "expected"), [("[0, 1, 0]", Severity.WARNING), ("torch.ones(3)", Severity.ERROR)]
)
def test_a_tensor_that_few_callers_give(usual: str, expected: Severity) -> None:
    assert severity("DEV504", LOOK.format(usual=usual)) is expected


STATE = (
    "import torch\n\n\ndef resume(path, rank):\n    if rank == -1:\n        place = None\n"
    "    else:\n        place = {place}\n    held = torch.load(path, map_location=place)\n"
    "    torch.set_rng_state(held['rng'])\n"
)


@pytest.mark.parametrize(
    ("place", "expected"),
    [("{'cuda:0': f'cuda:{rank}'}", None), ("f'cuda:{rank}'", Severity.WARNING)],
)
def test_a_map_that_leaves_the_cpu_as_it_is(place: str, expected: Severity | None) -> None:
    assert severity("DEV598", STATE.replace("{place}", place)) is expected


CHOSEN = (
    "import torch\nfrom transformers import AutoModel\n\n\ndef forecast(name, rows):\n"
    "    {first}\n    place = 'cuda' if torch.cuda.is_available() else 'cpu'\n    {then}\n"
    "    return net(rows.to(place))\n"
)
MADE_THERE = "net = AutoModel.from_pretrained(name, device_map={place})"


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (MADE_THERE.format(place="'auto'"), "print(place)", Severity.WARNING),
        ("print(rows)", MADE_THERE.format(place="place"), None),
    ],
)
def test_a_device_of_what_is_made_after_the_choice(
    first: str, then: str, expected: Severity | None
) -> None:
    assert severity("DEV510", CHOSEN.format(first=first, then=then)) is expected


KEPT = (
    "import functools\n\nimport torch\n\n\n@functools.lru_cache\ndef mask(n: int):\n"
    "    return torch.ones(n, device=torch.cuda.current_device())\n\n\n"
    "def main(rank):\n    {first}\n    return mask(3)\n"
)


@pytest.mark.parametrize(
    ("first", "expected"),
    [("torch.cuda.set_device(rank)", Severity.NOTE), ("print(rank)", Severity.WARNING)],
)
def test_a_cache_of_a_process_with_one_gpu(first: str, expected: Severity) -> None:
    assert severity("DEV511", KEPT.format(first=first)) is expected


LOADED = (
    "import torch\n\n\nclass Run:\n    def __init__(self, net):\n        self.net = net\n"
    "        self.at = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n\n"
    "    def load(self, path):\n        if self.at == 'cuda':\n            state = {load}(path)\n"
    "        else:\n            state = torch.load(path, map_location='cpu')\n        {then}\n"
)


@pytest.mark.parametrize(
    ("load", "then", "expected"),
    [
        ("torch.load", "self.net.load_state_dict(state)", Severity.NOTE),
        ("torch.load", "return state", Severity.ERROR),
        ("self.read", "self.net.load_state_dict(state)", Severity.ERROR),
    ],
)
def test_a_choice_of_where_a_state_is_loaded(load: str, then: str, expected: Severity) -> None:
    assert severity("DEV501", LOADED.format(load=load, then=then)) is expected
