"""Tensors that stay behind when what they belong to is moved, on a simulated GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Severity
from tests.rules.recorded import WRAPPER, found, runs_without_findings, watched

GPU = "cuda:1x1GiB"
MODEL = """\
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(8, 8)
        {assigned}
    def forward(self, x):
        return {used}
net = Net()
net.to("cuda")
net(torch.ones(8, 8, device="cuda"))
"""
PLAIN = "self.mask = torch.ones(8, 8).tril()"
BUFFER = 'self.register_buffer("mask", torch.ones(8, 8).tril(), persistent=False)'


def program(assigned: str, used: str) -> str:
    return MODEL.format(assigned=assigned, used=used)


@pytest.mark.parametrize("used", ["self.head(x) * self.mask", "self.mask @ x"])
def test_a_plain_attribute_of_a_module(tmp_path: Path, used: str) -> None:
    seen = watched(tmp_path, program(PLAIN, f"{used}  # flagged"), "OFF107", GPU)
    assert seen.only.message == (
        "`net.mask` is on cpu: it is neither a parameter nor a buffer (assigned at "
        "program.py:6), so it stayed there when `Net` was moved to cuda:0 at program.py:10"
    )
    assert seen.only.severity is Severity.ERROR
    assert seen.fixed == program(BUFFER, f"{used}  # flagged")
    assert [each.code for each in found(seen.timeline)] == ["OFF107"]


def test_one_of_a_part_of_a_module(tmp_path: Path) -> None:
    source = program(PLAIN, "self.head(x) * self.mask  # flagged")
    source = source.replace("net = Net()", "net = torch.nn.Sequential(Net())")
    seen = watched(tmp_path, source, "OFF107", GPU)
    assert "`net.0.mask` is on cpu" in seen.only.message
    assert "`Sequential` was moved" in seen.only.message


@pytest.mark.parametrize(
    ("assigned", "used"),
    [
        (BUFFER, "self.head(x) * self.mask"),
        (PLAIN, "self.head(x) * self.mask.to(x.device)"),
        (PLAIN, "self.head(x)"),
        (PLAIN, "self.head(x)[self.mask.bool()]"),
        ("self.scale = torch.tensor(2.0)", "self.head(x) * self.scale"),
        ("self.weight = self.head.weight", "x @ self.weight"),
        ("self.weights = [self.head.weight]", "x @ self.weights[0]"),
    ],
)
def test_attributes_that_do_no_harm(tmp_path: Path, assigned: str, used: str) -> None:
    assert not watched(tmp_path, program(assigned, used), "OFF107", GPU).found


PACKED = (
    WRAPPER.replace('return ["inner"], None', 'return ["inner", "scale"], None')
    .replace("        self.inner = inner\n", "        self.inner, self.scale = inner, scale\n")
    .replace("def __init__(self, inner, **said)", "def __init__(self, inner, scale, **said)")
    .replace("def __new__(cls, inner, **said)", "def __new__(cls, inner, scale, **said)")
    .replace("def answer(cls, func, args, kwargs): ...", """\
def answer(cls, func, args, kwargs):
        if func is torch.ops.aten._to_copy.default:
            device = kwargs["device"]
            return cls(args[0].inner.to(device), {scale})
        if func is torch.ops.aten.detach.default:
            return cls(args[0].inner, args[0].scale)
packed = Packed(torch.ones(4, 4), torch.ones(4))
moved = packed.to("meta"){mark}
""")
)  # fmt: skip


def test_an_inner_tensor_that_a_wrapper_forgets(tmp_path: Path) -> None:
    source = PACKED.replace("{scale}", "args[0].scale").replace("{mark}", "  # flagged")
    seen = watched(tmp_path, source, "OFF107")
    assert "a `Packed` is moved to meta by Tensor.to, and its `scale` stayed on cpu" in (
        seen.only.message
    )


def test_a_wrapper_that_takes_all_along(tmp_path: Path) -> None:
    source = PACKED.replace("{scale}", "args[0].scale.to(device)").replace("{mark}", "")
    assert not watched(tmp_path, source, "OFF107").found


BARE = """\
import torch
class Table(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.cos, self.sin = torch.arange(8.0).cos(), torch.arange(8.0).sin()
    def forward(self, x):
        return x * self.cos + x * self.sin{flagged}
table = Table().{move}
table(torch.ones(8{there}))
"""
THERE = ', device="cuda"'


@pytest.mark.parametrize(("move", "place"), [
    ("cuda()", "cuda"), ("to('cuda:0')", "cuda:0"), ("cuda(0)", "cuda:0"),
])  # fmt: skip
def test_a_module_that_has_nothing_to_move(tmp_path: Path, move: str, place: str) -> None:
    source = BARE.format(flagged="  # flagged", move=move, there=THERE)
    seen = watched(tmp_path, source, "OFF107", GPU)
    assert seen.only.message == (
        "`table.cos` is on cpu: it is neither a parameter nor a buffer (assigned at program.py:5), "
        f"so it stayed there when `Table` was moved to {place} at program.py:8"
    )
    mended = seen.fixed.replace("  # flagged", "")
    assert (
        '        self.register_buffer("cos", torch.arange(8.0).cos(), persistent=False)\n'
        '        self.register_buffer("sin", torch.arange(8.0).sin(), persistent=False)\n'
    ) in mended
    runs_without_findings(tmp_path, mended, "OFF107", GPU)


@pytest.mark.parametrize(("move", "there"), [("half()", ""), ("cpu()", "")])
def test_a_module_that_goes_nowhere(tmp_path: Path, move: str, there: str) -> None:
    watched(tmp_path, BARE.format(flagged="", move=move, there=there), "OFF107", GPU)
