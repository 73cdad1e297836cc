"""Mistakes that no run comes to, and what looks like one: a note, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.findings import Severity
from tests.rules.devices.test_on_the_cpu import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
ASKED = "import torch\n\n\ndef shown(x: torch.Tensor):\n    return x.shape\n\n\n"
TRIED = 'if __name__ == "__main__":\n    x = torch.ones(2)\n    print(x.device == "cpu")\n'
LOADED = (
    "import torch\n\n\ndef load(name, precision=None):\n    device = torch.device(name)\n"
    '    if precision is None:\n        precision = "full" if device == "cpu" else "half"\n'
    "    return torch.nn.Linear(2, 2), precision\n"
)
HEADS = (
    "import torch\nfrom torch import nn\n\n\nclass Head:\n    def __init__(self, device):\n"
    "        self.device = device\n        kept = torch.ones(2){there}\n"
    "        self.row = nn.Parameter(kept)\n\n    def run(self, rows):\n"
    "        self.row.to(self.device)\n        {then}\n        return self.row + rows\n"
)
LOADER = (
    'import torch\n\n\ndef loader(rows, device="cuda"):\n'
    "    return [each.to(device) for each in rows]\n\n\n"
    'def train(model, rows, device="cuda"):\n    model.to(device)\n'
    "    return [model(each) for each in loader(rows)]\n"
)
MOVED = (
    "import torch\nfrom torch import nn\n\n\nclass Words(nn.Module):\n"
    '    def __init__(self, device="cuda"):\n        super().__init__()\n'
    "        self.table = nn.Embedding(9, 9)\n"
    "        self.device = device\n\n"
    "    def forward(self, x):\n        return self.table(torch.tensor(x).to(self.device))\n\n\n"
    "net = Words(){moved}\n"
)


def of_project(folder: Path, files: dict[str, str], code: str) -> list[Severity]:
    (folder / "pyproject.toml").write_text("")
    (folder / "net").mkdir()
    for name, text in {"__init__.py": "", **files}.items():
        (folder / "net" / name).write_text(text)
    request = CheckRequest(paths=(str(folder),), cache_dir=None, codes=frozenset((code,)))
    return [each.severity for each in check(request).findings]


@pytest.mark.parametrize(
    ("tried", "other", "expected"),
    [
        (TRIED, "from net.shapes import shown\n", NOTE),
        (TRIED, "", ERROR),
        (TRIED + "    main()\n", "from net.shapes import shown\n", ERROR),
    ],
)
def test_what_a_module_tries_out(
    tmp_path: Path, tried: str, other: str, expected: Severity
) -> None:
    files = {"shapes.py": ASKED + tried, "train.py": other}
    assert of_project(tmp_path, files, "DEV501") == [expected]


@pytest.mark.parametrize(("call", "expected"), [("load(name, kind)", NOTE), ("load(name)", ERROR)])
def test_what_every_caller_gives(tmp_path: Path, call: str, expected: Severity) -> None:
    run = f'from net.loads import load\n\nif __name__ == "__main__":\n    print({call})\n'
    files = {"loads.py": LOADED, "run.py": run}
    assert of_project(tmp_path, files, "DEV501") == [expected]


@pytest.mark.parametrize(
    ("there", "then", "expected"),
    [
        ("", "rows = rows + 1", ERROR),
        (".to(device)", "rows = rows + 1", ERROR),
        ("", "self.row.data = torch.stack(rows)", NOTE),
    ],
)
def test_a_dropped_move_of_what_is_replaced(there: str, then: str, expected: Severity) -> None:
    assert severity("DEV504", HEADS.format(there=there, then=then)) is expected


def test_a_dropped_move_to_where_the_parameter_was_made() -> None:
    source = HEADS.replace("kept = torch.ones(2){there}", "kept = torch.ones(2).to(self.device)")
    assert severity("DEV504", source.format(then="rows = rows + 1")) is None


@pytest.mark.parametrize(
    ("call", "expected"),
    [("looked(x)", NOTE), ("looked(x, up)", ERROR), ("looked(x, up=rows)", ERROR)],
)
def test_a_dropped_move_of_what_nobody_gives(tmp_path: Path, call: str, expected: Severity) -> None:
    look = (
        "import torch\n\n\ndef looked(x, up=None):\n    if torch.is_tensor(up):\n"
        "        up.to(x.device)\n        return x + up\n    return x\n"
    )
    files = {"look.py": look, "run.py": f"from net.look import looked\n\nprint({call})\n"}
    assert of_project(tmp_path, files, "DEV504") == [expected]


@pytest.mark.parametrize(
    ("more", "expected"), [("", NOTE), ("\n\ntrain(net, rows, device=chosen)\n", WARNING)]
)
def test_two_defaults_that_are_gpus(tmp_path: Path, more: str, expected: Severity) -> None:
    (tmp_path / "net.py").write_text(LOADER + more)
    request = CheckRequest(paths=(str(tmp_path),), cache_dir=None, codes=frozenset(("DEV550",)))
    assert [each.severity for each in check(request).findings] == [expected]


@pytest.mark.parametrize(("moved", "expected"), [('.to("cpu")', WARNING), (".cuda()", NOTE)])
def test_a_module_that_is_moved_to_its_default(moved: str, expected: Severity) -> None:
    assert severity("DEV514", MOVED.format(moved=moved)) is expected


@pytest.mark.parametrize(
    ("sizes", "write", "expected"),
    [
        ("n, 4, 4", "x[0, 1] = 2", WARNING),
        ("n, 4, 4", "x[:, :3] = 2", NOTE),
        ("n, 4, 4", "x[..., 3] = 2", NOTE),
        ("-1, n, 4", "x[:, i] = 2", WARNING),
        ("-1, n, 4", "x[i] = 2", NOTE),
        ("n, 4, 4", "x += 2", NOTE),
    ],
)
def test_a_write_to_rows_that_are_one(sizes: str, write: str, expected: Severity) -> None:
    source = (
        f"import torch\n\ndef f(n, i):\n    x = torch.eye(4)[None].expand({sizes})\n    {write}\n"
    )
    assert severity("STO229", source) is expected


@pytest.mark.parametrize(("stream", "expected"), [("batch.side", None), ("self.side", WARNING)])
def test_a_stream_that_another_object_keeps(stream: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\nclass Camera:\n    def forward(self, batch):\n"
        f"        {stream} = torch.cuda.Stream()\n        with torch.cuda.stream({stream}):\n"
        '            batch.rows = batch.R.to("cpu", non_blocking=True)\n'
    )
    assert severity("XFR605", source) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [("gathered(self, outputs, output_device)", None), ("gathered(outputs, output_device)", ERROR)],
)
def test_a_function_that_is_given_self(call: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\ndef gathered(net, outputs, output_device):\n    return outputs\n\n\n"
        "class Net(torch.nn.DataParallel):\n    def gather(self, outputs, output_device):\n"
        f"        return {call}\n"
    )
    assert severity("OFF112", source) is expected


@pytest.mark.parametrize(("waits", "expected"), [("no_sync", None), ("synchronize", WARNING)])
def test_a_branch_that_never_runs(waits: str, expected: Severity | None) -> None:
    source = (
        "class Loop:\n    def __init__(self, model):\n        self.use_ddp = False\n"
        "        self.model = model\n\n    def step(self):\n        if self.use_ddp:\n"
        f"            self.model.{waits}()\n"
    )
    assert severity("OFF121", source) is expected


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


GREATER = (
    "import torch\n\n\nclass Codec:\n    def __init__(self, cuda=False):\n"
    "        self.cuda = cuda\n\n    def over(self, x):\n        r = torch.rand(x.size())\n"
    "        if self.cuda:\n            r = r.cuda()\n        return x > r\n"
)


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        ("codec = Codec()\nx = torch.randn(9)\nprint(codec.over(x))\n", NOTE),
        ("x = torch.randn(9)\nprint(x > torch.rand(9).cuda())\n", ERROR),
    ],
)
def test_what_a_callee_puts_on_a_gpu(tmp_path: Path, used: str, expected: Severity) -> None:
    run = f"import torch\n\nfrom net.codec import Codec\n\n{used}"
    assert of_project(tmp_path, {"codec.py": GREATER, "run.py": run}, "DEV521") == [expected]


CAMERA = (
    'import torch\n\n\nclass Camera:\n    def __init__(self, rows, device="cuda"):\n'
    "        self.device = device\n        self.rows = rows.to(device)\n\n"
    "    {how}def like({given}):\n        return Camera(rows)\n\n"
    "    def moved(self):\n        return self.rows.to(self.device)\n"
)


@pytest.mark.parametrize(
    ("how", "given", "expected"),
    [("@staticmethod\n    ", "rows", None), ("", "self, rows", WARNING)],
)
def test_a_method_without_an_object(how: str, given: str, expected: Severity | None) -> None:
    assert severity("DEV550", CAMERA.format(how=how, given=given)) is expected


NUMBER = (
    "import torch\n\n\ndef ones(x: torch.Tensor):\n"
    "    return torch.ones(2, device=x.get_device()) + x\n"
)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("print(ones(rows.cuda()))\n", NOTE),
        ('device = "cuda" if gpu else "cpu"\nprint(ones(rows.to(device)))\n', WARNING),
        ('parser.add_argument("--no-cuda")\nprint(ones(rows))\n', WARNING),
        (
            'rows = torch.load(path, map_location=torch.device("cpu"))\nprint(ones(rows.cuda()))\n',
            NOTE,
        ),
    ],
)
def test_a_number_where_there_always_is_a_gpu(tmp_path: Path, run: str, expected: Severity) -> None:
    files = {"shapes.py": NUMBER, "run.py": f"from net.shapes import ones\n\n{run}"}
    assert of_project(tmp_path, files, "DEV535") == [expected]


GRID = (
    "import torch\nfrom torch import nn\n\n\nclass Loss(nn.Module):\n    def place(self, n):\n"
    "        u = torch.arange(n).cuda()\n        self.rows = torch.stack((u, u))\n\n"
    "    def lifted(self, depth: torch.Tensor):\n        return depth * self.rows\n\n"
    "    def forward(self, depth: torch.Tensor):\n        {first}\n"
    "        return self.lifted(depth).mean()\n\n\nnet = Loss().cuda()\n"
)


@pytest.mark.parametrize(
    ("first", "expected"),
    [("self.place(len(depth))", NOTE), ("if self.new: self.place(len(depth))", ERROR)],
)
def test_an_attribute_that_is_made_each_time(first: str, expected: Severity) -> None:
    assert severity("OFF107", GRID.format(first=first)) is expected
