"""What stands around a true finding, and makes a note of it or nothing at all."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.devices.reasons import runs_without_a_gpu
from tests.rules.devices.test_on_the_cpu import findings, severity

HEAD = "import torch\nfrom torch import nn\n\n\n"
WRITTEN = (
    HEAD + "def fold(bias: torch.Tensor, other: torch.Tensor, values: torch.Tensor):\n"
    "    bias{written}.to({given})\n"
)
MOVED = (
    HEAD + "def padded(x: torch.Tensor, edges: torch.Tensor, n):\n"
    "    rows = torch.zeros(n, 2){before}\n    rows.to(x.device)\n"
    "    return torch.cat((edges, rows))\n"
)


@pytest.mark.parametrize(
    ("written", "given", "expected"),
    [
        ("", "other.device", Severity.ERROR),
        (".detach()", "device=bias.device", Severity.ERROR),
        (".copy_(values)", "device=other.device", Severity.NOTE),
        (".copy_(values)", "device=bias.device, dtype=bias.dtype", None),
        ("", "bias.device", None),
    ],
)
def test_a_move_after_writing_in_place(written: str, given: str, expected: Severity | None) -> None:
    source = WRITTEN.format(written=written, given=given)
    assert severity("DEV504", source) is expected
    if expected is not None and written.endswith("(values)"):
        (found,) = findings("DEV504", source)
        assert found.message.endswith("has what was written into it")


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", Severity.ERROR),
        (".to(edges.dtype)", Severity.ERROR),
        (".to(edges.device)", Severity.NOTE),
        (".to(edges.device).to(edges.dtype)", Severity.NOTE),
    ],
)
def test_a_move_after_a_move_to_a_tensor(before: str, expected: Severity) -> None:
    assert severity("DEV504", MOVED.format(before=before)) is expected


ASKED = (
    HEAD + "class Task:\n    def __init__(self, device: torch.device, keep: bool = True):\n"
    "        if {asked}:\n            print('kept on the CPU')\n            keep = False\n"
    "        self.keep, self.device = keep, device\n\n"
    "    def close(self):\n        if {test}self.device != 'cpu':\n            {what}\n"
)


@pytest.mark.parametrize(
    ("asked", "test", "what", "expected"),
    [
        ("not keep", "", "torch.cuda.empty_cache()", Severity.NOTE),
        ("not keep", "", "torch.cuda.synchronize()", Severity.ERROR),
        ("not keep", "self.keep and ", "torch.cuda.synchronize()", Severity.ERROR),
        ("device.type != 'cuda'", "self.keep and ", "torch.cuda.synchronize()", Severity.NOTE),
    ],
)
def test_a_device_compared_with_a_text(
    asked: str, test: str, what: str, expected: Severity
) -> None:
    assert severity("DEV501", ASKED.format(asked=asked, test=test, what=what)) is expected


ORDERED = (
    HEAD + "def columns(x: torch.Tensor, n, m):\n    device = x.device\n"
    "    found = torch.zeros(n, m, device=device)\n    chance = torch.rand(n, m)\n"
    "    {use}\n    return found\n"
)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("found = found + chance", Severity.WARNING),
        ("order = chance.argsort(dim=1)\n    found[:, order] = 1.0", Severity.NOTE),
        ("order = chance.argsort(dim=1)\n    found = found * order", Severity.WARNING),
    ],
)
def test_a_tensor_that_only_gives_an_order(use: str, expected: Severity) -> None:
    assert severity("DEV534", ORDERED.format(use=use)) is expected


@pytest.mark.parametrize(("size", "expected"), [("0, 2", Severity.WARNING), ("", None)])
def test_a_factory_that_raises(size: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Rows(nn.Module):\n    def forward(self, x, device):\n"
        f"        if x is None:\n            return torch.zeros({size})\n"
        "        return torch.ones(3, 2, device=device) + torch.zeros(3, 2)\n"
    )
    assert severity("DEV531", source) is expected


@pytest.mark.parametrize(
    ("owner", "expected"), [("self", Severity.NOTE), ("layer", Severity.WARNING)]
)
def test_two_tensors_of_one_object(owner: str, expected: Severity) -> None:
    source = (
        HEAD + "class Scaled(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.weight = nn.Parameter(torch.ones(n, n))\n"
        "        self.bias = nn.Parameter(torch.ones(n))\n\n"
        "    def forward(self, x, layer):\n"
        f"        weight = {owner}.weight.to(x.device)\n"
        f"        return nn.functional.linear(x, weight, {owner}.bias)\n"
    )
    assert severity("DEV522", source) is expected


FETCHED = (
    "import glob\nimport os\n\nimport torch\nfrom hub import file_download, folder_download\n\n\n"
    "def where(name, folder):\n    return file_download(repo_id={repo}, filename=name)\n\n\n"
    "def restore(model, small, folder, repo):\n"
    "    owned = 'someone/' + small\n    {get}\n"
    "        model.load_state_dict(torch.load(part))\n"
)


@pytest.mark.parametrize(
    ("repo", "get", "expected"),
    [
        ("'someone/small'", "for part in [where('net.pt', folder)]:", Severity.NOTE),
        ("folder", "for part in [where(small, folder)]:", Severity.WARNING),
        ("folder", "for part in glob.glob(folder_download(owned)):", Severity.NOTE),
        ("folder", "for part in glob.glob(folder_download(repo)):", Severity.WARNING),
        ("folder", "for part in glob.glob(folder):", Severity.WARNING),
    ],
)
def test_a_file_that_the_project_publishes(repo: str, get: str, expected: Severity) -> None:
    source = runs_without_a_gpu(FETCHED.format(repo=repo, get=get))
    assert severity("DEV506", source) is expected


HANDED = (
    "import torch\n\n\ndef parsed(text, device=None):\n"
    "    return torch.tensor(list(map(float, text)))\n"
    "\n\ndef read(path, device=None):\n    return parsed(open(path), device)\n"
    "\n\ndef table(path, {own}):\n    return read(path, {passed})\n"
    "\n\ndef both(path):\n    return read(path), table(path)\n"
)


@pytest.mark.parametrize(
    ("own", "passed", "expected"),
    [
        ("rows=2", "**{}", Severity.WARNING),
        ("device=None", "device=device", Severity.NOTE),
        ("device='cuda'", "device=device", Severity.WARNING),
        ("rows=2", "device='cuda'", Severity.WARNING),
    ],
)
def test_what_nobody_hands_on(own: str, passed: str, expected: Severity) -> None:
    found = findings("DEV527", HANDED.format(own=own, passed=passed))
    assert [each.severity for each in found if each.site.line == 5] == [expected]


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("print(found[:, 0].mean().item(), found.max().item())", Severity.NOTE),
        ("return found[:, 0]", Severity.WARNING),
    ],
)
def test_numbers_that_are_only_shown(use: str, expected: Severity) -> None:
    source = (
        "import torch\n\n\ndef shown(rows, gpu):\n    device = torch.device(f'cuda:{gpu}')\n"
        f"    found = torch.tensor(rows)\n    {use}\n"
    )
    assert severity("DEV527", source) is expected


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
    ("head", "net", "expected"),
    [
        ("    @staticmethod\n    def check():\n", "Net()", None),
        ("    def check(self):\n", "self.net", Severity.WARNING),
    ],
)
def test_a_net_that_is_made_right_there(head: str, net: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())\n\n"
        "    def forward(self, x):\n        return self.net(x - 1)\n\n"
        f"{head}        net = {net}\n        image = torch.ones(3, 2) * 255\n"
        "        return net(image)\n"
    )
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ("self.bias = self.bias.to(self.place)", Severity.NOTE),
        ("self.bias = self.bias.to('cpu')", Severity.ERROR),
        ("other = self.bias.to(self.place)", Severity.ERROR),
    ],
)
def test_an_attribute_that_another_method_moves(later: str, expected: Severity) -> None:
    source = (
        HEAD + "class Observer(nn.Module):\n"
        "    def __init__(self, weight: torch.Tensor, bias: torch.Tensor):\n"
        "        super().__init__()\n        self.bias, self.place = bias, weight.device\n"
        "        self.bias = bias\n        self.bias.to(self.place)\n\n"
        f"    def run(self):\n        {later}\n"
    )
    assert severity("DEV504", source) is expected


ONE_HOT = (
    "import torch\n\n\ndef rows_of(x: torch.Tensor, n, device='cuda'):\n"
    "    return torch.zeros(len(x), n, device=device) + x.long().view(-1, 1)\n"
    "\n\ndef mixed(x, n, device='cuda'):\n    return rows_of(x, n, {passed})\n"
    "\n\ndef both(x):\n    return mixed(x, 2, {given})\n"
)


@pytest.mark.parametrize(
    ("passed", "given", "expected"),
    [
        ("device=device", "device=x.device", Severity.NOTE),
        ("x.device", "", Severity.NOTE),
        ("device=device", "", Severity.WARNING),
        ("", "device=x.device", Severity.WARNING),
    ],
)
def test_a_default_that_no_call_leaves(passed: str, given: str, expected: Severity) -> None:
    found = findings("DEV520", ONE_HOT.format(passed=passed, given=given))
    assert [each.severity for each in found if each.site.line == 5] == [expected]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("torch.tensor(list(range(n)))", Severity.NOTE),
        ("x", Severity.WARNING),
    ],
)
def test_a_tensor_beside_its_like(other: str, expected: Severity) -> None:
    source = (
        HEAD + "def padded(x: torch.Tensor, n, m):\n    device = x.device\n"
        "    left = torch.zeros(n, m, device=device)\n"
        f"    right = torch.cat([{other}, torch.zeros(n, m)])\n    return left, right\n"
    )
    assert severity("DEV534", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.FloatTensor(sizes)", Severity.WARNING),
        ("torch.cuda.FloatTensor(sizes)", None),
    ],
)
def test_a_type_of_cuda_is_on_a_gpu(made: str, expected: Severity | None) -> None:
    source = (
        "import torch\nimport torch.distributed as dist\n\n\ndef told(x, sizes, first):\n"
        f"    if first:\n        said = {made}\n        dist.broadcast(said, 0)\n    else:\n"
        "        said = torch.empty(2, device=torch.cuda.current_device())\n"
        "        dist.broadcast(said, 0)\n    return x.view(said)\n"
    )
    assert severity("DEV552", source) is expected


@pytest.mark.parametrize(
    ("base", "first", "expected"),
    [
        ("nn.Module", "super()._apply(fn)", None),
        ("object", "print(fn)", Severity.WARNING),
    ],
)
def test_what_the_base_moves(base: str, first: str, expected: Severity | None) -> None:
    source = (
        HEAD + f"class Model({base}):\n    def __init__(self, config):\n"
        "        super().__init__()\n        self.body, self.head = build(config)\n\n"
        "    def forward(self, x):\n        return self.head(self.body(x))\n\n"
        f"    def _apply(self, fn):\n        {first}\n"
        "        self.head.steps = fn(self.head.steps)\n        return self\n"
    )
    assert severity("DEV551", source) is expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("return anchors(y, self.steps)", Severity.NOTE),
        ("return y * self.steps", Severity.WARNING),
    ],
)
def test_what_is_read_where_it_is_made_too(use: str, expected: Severity) -> None:
    source = (
        "import torch\nfrom torch import nn\nfrom other import anchors\n\n\n"
        "class Head(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.proj = nn.Linear(n, n)\n        self.steps = torch.ones(n)\n"
        "        self.first = float(n) / self.steps[:, None]\n\n"
        f"    def forward(self, x):\n        y = self.proj(x)\n        {use}\n"
    )
    found = findings("DEV530", source)
    assert [each.severity for each in found if each.site.line == 10] == [expected]


@pytest.mark.parametrize(
    ("path", "expected"),
    [("folder + '/best.pt'", Severity.NOTE), ("folder + '/first.pt'", Severity.WARNING)],
)
def test_what_the_function_saved_above(path: str, expected: Severity) -> None:
    source = (
        "import torch\n\n\ndef fit(self, model, folder, device):\n    for turn in range(3):\n"
        "        if self.step(model) > 0.5:\n"
        "            torch.save(model.state_dict(), f'{folder}/best.pt')\n"
        f"    model.to(device).load_state_dict(torch.load({path}))\n"
    )
    assert severity("DEV506", source) is expected


@pytest.mark.parametrize(
    ("after", "expected"), [("", Severity.WARNING), (".to(**self.where)", None)]
)
def test_a_parameter_that_is_moved_at_once(after: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Scale(nn.Module):\n    def __init__(self, n, device):\n"
        "        super().__init__()\n        self.where = dict(device=device)\n"
        f"        self.scale = nn.Parameter(torch.ones(n)){after}\n"
        "        self.proj = nn.Linear(n, n, device=device)\n"
    )
    assert severity("NEW309", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.nonzero(self.mask).to(device)", None),
        ("torch.nonzero(self.mask)", Severity.WARNING),
        ("torch.nonzero(self.mask).to(self.device)", Severity.WARNING),
    ],
)
def test_rows_that_are_put_where_they_are_asked_for(made: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\n\nclass Rows:\n    def __init__(self, mask: torch.Tensor):\n"
        "        self.mask, self.rows, self.device = mask, None, mask.device\n\n"
        f"    def split(self, device='cpu'):\n        self.rows = {made}\n"
        "        return self.rows\n\n"
        "    def to(self, device):\n        self.mask = self.mask.to(device)\n        return self\n"
    )
    assert severity("OFF107", source) is expected


@pytest.mark.parametrize(("library", "expected"), [("torch", Severity.ERROR), ("tensorflow", None)])
def test_tensors_of_another_library(library: str, expected: Severity | None) -> None:
    source = (
        f"import {library}\n\n\ndef place(x):\n"
        "    rows = x.unsqueeze(0).contiguous().expand_as(x)\n"
        "    device = x.device\n    return rows, 'cuda' in device\n"
    )
    assert severity("DEV573", source) is expected


@pytest.mark.parametrize(
    ("type_", "expected"), [("mel.type()", None), ("torch.float16", Severity.ERROR)]
)
def test_the_type_of_another_tensor(type_: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Decoder(nn.Module):\n    def forward(self, mel):\n"
        "        first = torch.zeros(1, mel.size(1), mel.size(2))\n"
        f"        first = first.type({type_})\n"
        "        return torch.cat([first, mel[:-1, :, :]], 0)\n"
    )
    assert severity("NEW305", source) is expected


@pytest.mark.parametrize(
    ("frozen", "expected"), [("requires_grad", Severity.NOTE), ("kept", Severity.WARNING)]
)
def test_a_parameter_that_is_frozen_next(frozen: str, expected: Severity) -> None:
    source = (
        "def freeze(model):\n    for p in model.parameters():\n        p.detach()\n"
        f"        p.{frozen} = False\n"
    )
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("return (ids == -1) & (x[:, 4] > 0).cpu()", False),
        ("return ids, x", True),
    ],
)
def test_what_meets_a_tensor_of_the_cpu(use: str, expected: bool) -> None:
    source = (
        HEAD + "class Tracker(nn.Module):\n    def track(self, x: torch.Tensor):\n"
        "        x = x.to(self.weight.device)\n"
        f"        ids = torch.full((x.size(0),), -1, dtype=x.dtype)\n        {use}\n"
    )
    assert (severity("DEV532", source) is Severity.WARNING) is expected


@pytest.mark.parametrize(("put", "expected"), [("", Severity.WARNING), (".cuda()", Severity.NOTE)])
def test_an_attribute_that_is_put_on_a_gpu(put: str, expected: Severity) -> None:
    assert severity("DEV530", READ.format(put=put)) is expected


READ = (
    HEAD + "class Steps(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.proj = nn.Linear(n, n)\n        self.steps = torch.ones(n){put}\n\n"
    "    def forward(self, x):\n        return self.proj(x) * self.steps\n"
)


@pytest.mark.parametrize(
    ("order", "expected"), [("memory_format=order", None), ("device=order", Severity.WARNING)]
)
def test_a_parameter_in_another_order_of_memory(order: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Norm(nn.GroupNorm):\n    def forward(self, x):\n"
        "        return super().forward(x.float())\n\n\n"
        "class Scale(nn.Module):\n    def __init__(self, n, order):\n"
        "        super().__init__()\n        self.norm = Norm(2, n)\n"
        f"        self.gamma = nn.Parameter(0.1 * torch.ones([1, n, 1, 1])).to({order})\n\n"
        "    def forward(self, x):\n        return self.norm(x) * self.gamma\n"
    )
    assert severity("OFF107", source) in (expected, Severity.NOTE if expected else None)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("device: torch.device", Severity.WARNING),
        ("device: torch.device = torch.device('cuda')", Severity.NOTE),
    ],
)
def test_a_device_that_callers_may_leave_out(given: str, expected: Severity) -> None:
    source = (
        "import torch\n\n\nclass Renderer:\n"
        f"    def views(self, x: torch.Tensor, {given}):\n        return x.to(self.device)\n"
    )
    assert severity("DEV505", source) is expected


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("self.scale = nn.Parameter(torch.ones(n))", Severity.WARNING),
        ("self.register_buffer('scale', torch.ones(n))", Severity.NOTE),
        ("self.register_buffer('scale', torch.empty(n))", Severity.WARNING),
    ],
)
def test_a_buffer_that_is_made_without_the_device(kept: str, expected: Severity) -> None:
    source = (
        HEAD + "class Scale(nn.Module):\n    def __init__(self, n, device):\n"
        f"        super().__init__()\n        {kept}\n"
        "        self.proj = nn.Linear(n, n, device=device)\n"
    )
    assert severity("NEW309", source) is expected


@pytest.mark.parametrize(
    ("name", "expected"), [("forward", Severity.ERROR), ("widened", Severity.WARNING)]
)
def test_a_method_that_forward_calls(name: str, expected: Severity) -> None:
    calls = (
        "" if name == "forward" else "    def forward(self, x):\n        return self.widened(x)\n\n"
    )
    source = (
        HEAD + f"class Wide(nn.Module):\n{calls}    def {name}(self, rows: torch.Tensor):\n"
        "        return torch.cat([torch.ones(3), rows])\n"
    )
    assert severity("NEW305", source) is expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [("model.eval()", Severity.WARNING), ("model.eval().requires_grad_(False)", None)],
)
def test_a_model_whose_weights_need_no_gradient(model: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\n\ndef lengths(model: torch.nn.Module, loader):\n"
        f"    {model}\n    found = []\n    for x in loader:\n        found.append(model(x))\n"
        "    return torch.cat(found)\n"
    )
    assert severity("STO214", source) is expected


FETCHING = (
    "import os\n\nimport torch\nfrom hub import download\n\n\ndef where(name, root):\n"
    "    path = os.path.join(root, name)\n    if not os.path.exists(path):\n        {get}\n"
    "    return path\n\n\n"
    "def restore(model, root, name):\n    model.load_state_dict(torch.load(where({name}, root)))\n"
)


@pytest.mark.parametrize(
    ("get", "name", "expected"),
    [
        ("download(name, path)", "'small'", Severity.NOTE),
        ("download(name, path)", "name", Severity.WARNING),
        ("raise ValueError(name)", "'small'", Severity.WARNING),
    ],
)
def test_a_written_name_that_is_fetched(get: str, name: str, expected: Severity) -> None:
    source = runs_without_a_gpu(FETCHING.format(get=get, name=name))
    assert severity("DEV506", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [("chosen(x)", Severity.NOTE), ("torch.arange(3)", Severity.ERROR)],
)
def test_a_function_of_the_project_may_answer_where_it_is_meant(
    made: str, expected: Severity
) -> None:
    source = (
        "import torch\n\ndef chosen(x: torch.Tensor) -> torch.Tensor:\n    return x > 0\n\n"
        f"def run(x: torch.Tensor):\n    mask = {made}\n    mask.to(x.device)\n    return mask\n"
    )
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("Vae.from_pretrained(key)", Severity.NOTE),
        ("a.reshape(key)", Severity.WARNING),
    ],
)
def test_what_classes_load_is_not_alike(first: str, expected: Severity) -> None:
    made = first.partition(".")[2]
    names = ("Vae", "Net", "Text", "Tokens") if "Vae" in first else "abcd"
    rows = "".join(f"    {each.lower()}2 = {each}.{made}.to(device)\n" for each in names[:3])
    source = (
        f"from library import Vae, Net, Text, Tokens\n\ndef load(a, b, c, d, key, device):\n{rows}"
        f"    d2 = {names[3]}.{made}\n    return d2\n"
    )
    assert severity("DEV529", source) is expected


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


@pytest.mark.parametrize(
    ("use", "expected"), [("trainer.train()", None), ("pass", Severity.WARNING)]
)
def test_a_model_that_a_trainer_of_a_library_works_with(
    use: str, expected: Severity | None
) -> None:
    source = (
        "import torch\nimport transformers\nfrom torch import nn\n\n"
        "def run(rows: torch.Tensor, device):\n    rows = rows.to(device)\n"
        "    model = nn.Linear(3, 3)\n    trainer = transformers.Trainer(model=model)\n"
        f"    {use}\n    return model(rows)\n"
    )
    assert severity("DEV542", source) is expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("self.data.next()", Severity.NOTE),
        ("self.data.train()", Severity.WARNING),
        ("self.data(3)", Severity.WARNING),
    ],
)
def test_whatever_has_a_state_may_be_data(use: str, expected: Severity) -> None:
    source = (
        "class Loop:\n    def end(self):\n        self.kept = self.data.state_dict()\n\n"
        f"    def run(self):\n        {use}\n\n"
        "    def restore(self):\n        self.data.load_state_dict(self.kept)\n"
    )
    assert severity("SHD411", source) is expected


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("torch.distributed.barrier()", Severity.NOTE),
        ("torch.distributed.barrier(device_ids=[rank])", Severity.NOTE),
        ("torch.distributed.all_reduce(torch.ones(1).cuda())", Severity.WARNING),
    ],
)
def test_a_barrier_takes_the_gpu_of_its_rank(between: str, expected: Severity) -> None:
    source = (
        "import torch\n\ndef start(rank):\n    torch.distributed.init_process_group('nccl')\n"
        f"    {between}\n    torch.cuda.set_device(rank)\n"
    )
    assert severity("DEV510", source) is expected
