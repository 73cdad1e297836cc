"""DEV530, `plain-beside-buffers`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, findings, severity


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


@pytest.mark.parametrize(("put", "expected"), [("", Severity.WARNING), (".cuda()", Severity.NOTE)])
def test_an_attribute_that_is_put_on_a_gpu(put: str, expected: Severity) -> None:
    assert severity("DEV530", READ.format(put=put)) is expected


READ = (
    HEAD + "class Steps(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.proj = nn.Linear(n, n)\n        self.steps = torch.ones(n){put}\n\n"
    "    def forward(self, x):\n        return self.proj(x) * self.steps\n"
)


@pytest.mark.parametrize(
    ("use", "expected"), [("len(self.ids)", Severity.NOTE), ("x * self.ids", Severity.WARNING)]
)
def test_a_table_that_is_only_counted(use: str, expected: Severity) -> None:
    source = f"""
    import torch
    from torch import nn

    class Table(nn.Module):
        def __init__(self, names):
            super().__init__()
            self.register_buffer("rows", torch.zeros(3))
            self.ids = torch.tensor([len(each) for each in names])

        def forward(self, x):
            return x * self.rows, {use}
    """
    assert severity("DEV530", source) is expected


@pytest.mark.parametrize(
    "used",
    [
        "x[:, self.table]",
        "score(x, self.table[:3].view(3).to(x.device))",
        "[each * x for each in self.table]",
        "score(x, torch.multinomial(self.table, 3))",
    ],
)
def test_a_plain_attribute_that_may_stay_where_it_is(used: str) -> None:
    source = f"""
    import torch
    from torch import nn

    class Kept(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.table = torch.ones(n)

        def forward(self, x):
            return {used}

    def score(x, table):
        return x * table
    """
    assert severity("DEV530", source) is None
    assert severity("DEV530", source.replace(used, "score(x, self.table)")) is Severity.WARNING


@pytest.mark.parametrize(
    ("method", "expected"),
    [("", Severity.WARNING), ("\n        def post_init(self):", Severity.NOTE)],
)
def test_what_is_made_beside_the_weights_when_they_are_in_place(
    method: str, expected: Severity
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Packed(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.register_buffer("packed", torch.ones(n)){method}
            self.work = torch.zeros(4, device=self.packed.device)

        def forward(self, x):
            return x * self.packed * self.work
    """
    assert severity("DEV530", source) is expected


STEPS = (
    HEAD + "class Steps(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    "        self.proj = nn.Linear(n, n)\n        self.steps = torch.ones(n)\n\n"
    "    def forward(self, x):\n        y = self.proj(x)\n        {use}\n        return y\n"
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
    assert severity("DEV530", STEPS.format(use=use)) is expected


@pytest.mark.parametrize(
    ("used", "expected"),
    [("out['ids'] = x[:, self.ids]\n        out['seen'] = self.ids", Severity.NOTE),
     ("out['ids'] = x + self.ids", Severity.WARNING)],
)  # fmt: skip
def test_an_index_that_is_handed_on_may_stay(used: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.ids = torch.LongTensor([3, 2, 1])

    def forward(self, x, out):
        {used}
        return out
"""
    assert severity("DEV530", source) is expected


def test_what_is_called_is_a_module_or_function() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.rows = {made}

        def forward(self, x):
            return {used}
    """
    table = "nn.Embedding.from_pretrained(torch.eye(3))"
    assert severity("DEV530", source.format(made=table, used="self.rows(x)")) is None
    assert severity("DEV530", source.format(made="torch.eye(3)", used="self.rows * x")) is not None


_GIVEN = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, weight: {said}, features):
        super().__init__()
        self.weight = weight
        self.features = features

    def forward(self, x: torch.Tensor):
        made = {made}
        return {used}
"""


@pytest.mark.parametrize(
    ("said", "made", "used", "told"),
    [
        ("torch.Tensor", "self.features(x)", "made @ self.weight.unsqueeze(-1)", True),
        ("torch.Tensor | float", "x.exp()", "made - self.weight", True),
        (
            "torch.Tensor | list[float]",
            "x.exp()",
            "torch.einsum('bm,m->b', made, self.weight)",
            True,
        ),
        ("torch.Tensor", "x.exp()", "other(made, self.weight)", False),  # it may be moved there
        ("torch.Tensor", "self.features(3)", "made @ self.weight", False),
    ],
)
def test_what_is_given_and_meets_the_input(said: str, made: str, used: str, told: bool) -> None:
    found = findings("DEV530", _GIVEN.format(said=said, made=made, used=used))
    assert [each.told for each in found] == [told]
    is_one = "may be" if "|" in said else "is"
    assert f"{is_one} a tensor" in found[0].message


def test_a_number_that_is_given_is_no_tensor() -> None:
    assert not findings("DEV530", _GIVEN.format(said="float", made="x", used="made - self.weight"))


@pytest.mark.parametrize(
    ("said", "expected"), [("nn.Parameter", None), ("torch.Tensor", Severity.WARNING)]
)
def test_an_argument_that_may_be_a_parameter(said: str, expected: Severity | None) -> None:
    source = f"""
    from typing import Optional
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, rate: Optional[{said}] = None):
            super().__init__()
            self.rate = rate
            self.register_buffer("low", torch.zeros(3))

        def forward(self, x):
            x = x + self.low
            return x if self.rate is None else torch.tanh(self.rate * x)
    """
    assert severity("DEV530", source) is expected
