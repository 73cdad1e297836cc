"""DEV521, `factory-without-device`: what is made for modules, methods and helpers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import (
    HEAD,
    findings,
    found_in_package,
    severity,
    severity_in_package,
)


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
    ("read", "expected"), [("nn.Linear(self.width, 2)", None), ("nn.Linear(3, 2)", "warning")]
)
def test_a_property_that_is_read_where_the_module_is_made(read: str, expected: str | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.inner = nn.Linear(size, size)
            self.last = {read}

        @property
        def width(self):
            return self.inner(torch.zeros(1, 3)).shape[1]

        def forward(self, x):
            return self.last(self.inner(x))
    """
    assert severity("DEV521", source) == expected


def test_a_wrapper_moves_what_it_is_called_with() -> None:
    source = """
    import torch
    from torch import nn

    def trained(model, rank):
        model = nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
        return model(torch.randn(20, 10))
    """
    assert severity("DEV521", source) is None


@pytest.mark.parametrize(
    ("there", "expected"),
    [("rows", Severity.NOTE), ("rows.to(device)", Severity.WARNING)],
)
def test_beside_an_argument_of_a_plain_function(there: str, expected: Severity) -> None:
    source = f"""
    import torch

    def moved(rows: torch.Tensor, device: torch.device):
        return torch.cat([{there}, torch.zeros(3)])

    def blank(rows: torch.Tensor):
        return torch.zeros(3, device=rows.device)
    """
    assert severity("DEV521", source) is expected


def test_a_method_that_only_the_constructor_calls() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, shape):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)
            self.size = self.size_of(shape)

        def size_of(self, shape):
            return self.conv(torch.zeros(1, *shape)).numel()

        def forward(self, x):
            return self.conv(x){also}
    """
    assert severity("DEV521", source.format(also="")) is None
    called_later = " / self.size_of(x.shape)"
    assert severity("DEV521", source.format(also=called_later)) is Severity.WARNING


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("if device is None: device = chosen()", None), ("pass", Severity.ERROR)],
)
def test_a_function_that_chooses_a_device_itself(choice: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    def batch(n, device=None):
        {choice}
        return torch.ones(n, n, device=device)

    def train(steps):
        model = nn.Linear(3, 3).to("cuda")
        for _ in range(steps):
            model(batch(3)).sum().backward()
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("moved", "expected"), [("layers[0] = layers[0].to(device)", None), ("", Severity.WARNING)]
)
def test_a_model_may_be_moved_in_parts(moved: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from transformers import OPTForCausalLM

    class Runner:
        def __init__(self, name, device):
            self.device = device
            self.model = OPTForCausalLM.from_pretrained(name)

        def run(self, batch):
            device = self.device
            layers = self.model.model.decoder.layers
            {moved}
            ids = torch.tensor(batch).to(device)
            return self.model(ids)
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(("size", "expected"), [("0, 0", None), ("4, 4", Severity.WARNING)])
def test_a_kernel_reads_nothing_of_what_is_empty(size: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    import triton

    @triton.jit
    def kernel(x, mask, size):
        pass

    def run(x: torch.Tensor):
        mask = torch.zeros({size})
        kernel[(1,)](x, mask, x.numel())
        return x.cuda()
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("made", "main", "expected"),
    [
        ("torch.zeros(len(y), 3)", "print(one_hot(ask()), torch.ones(1).cuda())", [True]),
        ("torch.zeros(y.shape[0], 3)", "print(one_hot(ask()), torch.ones(1).cuda())", [True]),
        ("torch.zeros(rows, 3)", "print(one_hot(ask()), torch.ones(1).cuda())", [True]),
        ("torch.zeros(8, 3)", "print(one_hot(ask()), torch.ones(1).cuda())", []),
        ("torch.zeros(len(y), 3)", "print(one_hot(ask()))", []),
    ],
)
def test_what_is_made_after_the_shape_of_an_argument(
    tmp_path: Path, made: str, main: str, expected: list[bool]
) -> None:
    """Of a plain function in a file without devices, in a package that may use a GPU or not."""
    source = (
        "import torch\n\n\ndef one_hot(y):\n    shape = list(y.shape)\n    rows, _ = shape\n"
        f"    found = {made}\n    return found.scatter_(1, y.unsqueeze(-1), 1)\n"
    )
    main = f"from pkg.own import one_hot\n{main}\n"
    found = found_in_package(tmp_path, "DEV521", source, main=main)
    assert [each.told for each in found] == expected


@pytest.mark.usefixtures("as_the_rule_says")
def test_a_gpu_named_beside_the_base_class(tmp_path: Path) -> None:
    """The program of the file itself names none."""
    source = (
        "import torch\nfrom pkg.base import Base\n\n\nclass Gate(Base):\n"
        "    def forward(self):\n        norms = torch.norm(self.table.weight, dim=1)\n"
        "        return torch.max(norms, torch.ones(1, 1))\n"
    )
    base = (
        "import torch\nfrom torch import nn\n\n\nclass Base(nn.Module):\n"
        "    def __init__(self, n):\n        super().__init__()\n"
        "        self.table = nn.Embedding(n, n)\n"
        "        self.home = {home}\n"
    )
    for number, (home, expected) in enumerate(
        [("'cuda' if torch.cuda.is_available() else 'cpu'", Severity.WARNING), ("0", Severity.NOTE)]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = base.format(home=home)
        assert severity_in_package(folder, "DEV521", source, base=text) is expected


@pytest.mark.parametrize(
    ("then", "expected"),
    [(".to(x)", Severity.NOTE), (".to(x.dtype)", Severity.NOTE), ("", Severity.WARNING)],
)
def test_a_result_that_is_moved_at_once(then: str, expected: Severity) -> None:
    source = f"""
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor, bank: torch.Tensor, n):
            x = self.linear(x)
            index = torch.randperm(n)
            return x + (bank * index){then}
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(("keyword", "reported"), [("alpha", False), ("beta", False), ("x", True)])
def test_of_some_arguments_torch_reads_the_number(keyword: str, reported: bool) -> None:
    taken = "scale_t" if keyword == "x" else f"out, {keyword}=scale_t"
    source = f"""
    import torch

    def scores(queries: torch.Tensor, scale):
        scale_t = torch.tensor([scale])
        out = torch.empty(queries.shape, device=torch.device("cuda"))
        return torch.add(out, {taken})
    """
    assert bool(findings("DEV521", source)) is reported


TABLES = """import torch

def table(n, device=None):
    return torch.arange(n, device=device)
"""
EMBEDDED = """import torch
from .tables import table

ONE = torch.ones(1)

class Padded(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x + table({given})
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("x.shape[1]", True),
        ("n=x.shape[1]", True),
        ("x.shape[1], device=x.device", False),
        ("x.shape[1], x.device", False),
    ],
)
def test_a_helper_of_another_file_that_is_given_no_device(
    tmp_path: Path, given: str, expected: bool
) -> None:
    source = EMBEDDED.format(given=given)
    found = severity_in_package(tmp_path, "DEV521", source, tables=TABLES)
    assert (found is not None) is expected


DETECTOR = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)

class {cls}:
    def fit(self, rows):
        self.net = Net(){then}

    def scores(self, rows):
        return self.net(torch.ones(len(rows), 2))

def main(detector, rows):
    detector.fit(rows)
    {after}
    return detector.scores(rows)
"""


@pytest.mark.parametrize(
    ("cls", "then", "after", "found"),
    [
        ("Detector", "", "pass", False),
        ("Detector", ".to(pick())", "pass", True),
        ("Detector", "", "detector.net.cuda()", True),
        ("Detector(nn.Module)", "", "pass", True),
    ],
)
def test_a_plain_class_that_moves_nothing(cls: str, then: str, after: str, found: bool) -> None:
    source = DETECTOR.format(cls=cls, then=then, after=after)
    assert (severity("DEV521", source) is not None) is found
    assert (severity("NEW305", source) is not None) is found


PLACED = """
import torch

def noise(size):
    return torch.from_numpy(size)

def chosen(device=None):
    if device is None and torch.cuda.is_available():
        return torch.device("cuda")
    elif device is None:
        return torch.device("cpu")
    else:
        return device

class Drawer:
    def __init__(self, *, device=None):
        if device is None:
            device = chosen()
        self.device = device

    def rows(self, sizes):
        rows = [noise(each).to(self.device) for each in sizes]
        return torch.stack({stacked})
"""


@pytest.mark.parametrize(
    ("stacked", "expected"),
    [("rows", None), ("[torch.ones(2, device='cuda'), torch.ones(2)]", Severity.ERROR)],
)
def test_what_one_call_puts_somewhere_is_together(stacked: str, expected: Severity | None) -> None:
    assert severity("DEV521", PLACED.format(stacked=stacked)) is expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("'lab'", None),
        ("'xyz'", Severity.ERROR),
        ("kind", Severity.ERROR),
        ("kind='lab'", None),
    ],
)
def test_a_constant_argument_leaves_out_branches(kind: str, expected: Severity | None) -> None:
    source = f"""
import torch

def colors(rows, kind):
    white = torch.ones(3).cuda()
    if kind == "xyz":
        return rows * white
    elif kind in ("lab", "rgb"):
        return colors(rows.cuda(), "xyz")

def green(kind):
    return colors(torch.tensor([0.0, 1.0, 0.0]), {kind})
"""
    assert severity("DEV521", source) is expected
