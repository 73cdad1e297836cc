"""DEV544, `modules-in-plain-container`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("self.pools[0].to(x.device)", Severity.NOTE),
        ("self.other[0].to(x.device)", Severity.ERROR),
        ("return self.pools[x.ndim](x.to(self.device)).to(x.device)", Severity.NOTE),
        ("x = self.other[0](x.to(self.device))", Severity.ERROR),
        ("for pool in self.pools: pool.to(x.device)", Severity.NOTE),
        ("for pool in self.pools: x.to(x.device)", Severity.ERROR),
        ("for pool in self.other: pool.to(x.device)", Severity.ERROR),
    ],
)
def test_a_class_may_move_what_it_hides(body: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.pools = [nn.Conv1d(n, n, 3)]

    def forward(self, x):
        {body}
        return self.pools[0](x)
"""
    assert severity("DEV544", source) is expected


@pytest.mark.parametrize(
    ("where", "expected"), [("x.device", Severity.NOTE), ("self.device", Severity.ERROR)]
)
def test_hidden_modules_may_follow_their_input(where: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Kernel(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Conv1d(n, n, 3)

    def forward(self, x):
        self.weight.to({where})
        return self.weight(x)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.kernels = [Kernel(n)]

    def forward(self, x):
        return self.kernels[0](x)
"""
    assert severity("DEV544", source) is expected


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
    ("weight", "expected"),
    [
        ("nn.Parameter(torch.ones(3))", Severity.ERROR),
        ("nn.Parameter(weights.read('scale'))", Severity.NOTE),
    ],
)
def test_layers_that_take_their_weights(weight: str, expected: Severity) -> None:
    assert severity("DEV544", LISTED.format(weight=weight)) is expected


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


def test_modules_of_two_containers_are_registered_by_one_of_them() -> None:
    source = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.order = []
            layers = []
            for _ in range(n):
                layer = nn.Linear(n, n)
                self.order.append(layer)
                {also}
            self.layers = nn.ModuleList(layers)

        def forward(self, x):
            for layer in self.order:
                x = layer(x)
            return x
    """
    assert severity("DEV544", source.format(also="layers.append(layer)")) is None
    assert severity("DEV544", source.format(also="pass")) is Severity.WARNING


@pytest.mark.parametrize(
    ("made", "expected"), [("nn.Sequential()", None), ("nn.Linear(2, 2)", Severity.WARNING)]
)
def test_an_empty_sequence_has_no_weights(made: str, expected: Severity | None) -> None:
    source = f"""
    from torch import nn

    class Levels(nn.Module):
        def __init__(self):
            super().__init__()
            self.levels = []
            self.levels.append({made})

        def forward(self, x):
            return [level(x) for level in self.levels]
    """
    assert severity("DEV544", source) is expected


ENGINES = """
    import torch
    from torch import nn

    class Engine(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model
            self.parts = nn.ModuleList([model])

        def forward(self, x):
            {drawn}
            return self.model(x) * noise

    class Engines(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model
            self.engines = []

        def begin(self):
            self.engines.append(Engine(self.model))

        def forward(self, x):
            return self.engines[0](x)
    """


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("noise = torch.rand(3)", Severity.NOTE),
        ("self.noise = noise = torch.rand(3)", Severity.WARNING),
        ("noise = torch.rand(3); self.scale = nn.Parameter(noise)", Severity.WARNING),
        ("noise = self.drawn = nn.Linear(3, 3)", Severity.WARNING),
    ],
)
def test_a_module_whose_weights_are_all_given(drawn: str, expected: Severity) -> None:
    assert severity("DEV544", ENGINES.format(drawn=drawn)) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("self.rows = [nn.Linear(n, n) for _ in range(3)]", Severity.ERROR),
        ("self.rows = [BinaryAccuracy()]", Severity.WARNING),
        ("self.rows = []\n        self.rows.append(nn.Linear(n, n))", Severity.WARNING),
    ],
)
def test_modules_that_are_appended_and_metrics(made: str, expected: Severity) -> None:
    source = (
        HEAD + "from torchmetrics.classification import BinaryAccuracy\n\n"
        f"class Net(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        f"        {made}\n\n    def forward(self, x):\n        return self.rows[0](x)\n"
    )
    assert severity("DEV544", source) is expected


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("self.nodes = torch.nn.ParameterList(self.nodes)", None),
        ("self.nodes = list(self.nodes)", Severity.WARNING),
    ],
)
def test_a_list_may_become_one_of_parameters(then: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    class Tree(torch.nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.nodes = []
            for size in sizes:
                nodes = torch.nn.Parameter(torch.zeros(size))
                self.nodes.append(nodes)
            {then}

        def forward(self, x):
            return sum(x @ each for each in self.nodes)
    """
    assert severity("DEV544", source) is expected
