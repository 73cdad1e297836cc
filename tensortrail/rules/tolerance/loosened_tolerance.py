from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.objects import called, last_name

_COMPARES = (
    "assert_close", "allclose", "assert_allclose", "assertTrue_allclose", "assert_almost_equal",
)  # fmt: skip
_ROUND_TRIP = re.compile(
    r"dequantiz|round_?trip|state_dict|checkpoint|save|load|restored|reloaded|\bto_copy|offload"
    r"|serialize|quantize",
    re.IGNORECASE,
)
_SAVES_AND_LOADS = re.compile(
    r"^(save|load|dequantize|serialize)(_|$)|_(checkpoint|state_dict|pretrained)$"
)
"""Calls in the test itself, on whatever it compares later."""
_REASON = re.compile(r"[a-z]{3,}.*[a-z]{3,}", re.IGNORECASE)
_CHECKS_NOTHING = 1.0


class LoosenedTolerance(Rule):
    """The tolerance of a round-trip test is so wide that the test checks nothing.

    ## What it does
    Reports `assert_close`, `allclose` and the like in a test of a quantization or checkpoint round
    trip, if the relative tolerance is 1 or more, or the absolute tolerance is 1 or more against
    values made by `rand` or `randn`.

    Not reported: a tolerance with a comment that gives the reason.

    ## Why is this bad?
    `rtol=1` accepts zero for every value: a restored weight that was never written passes. The data
    loss that the test should catch goes unnoticed.

    ## Fix safety
    No fix is offered: the right tolerance depends on the format.

    ## References
    - `torch.testing.assert_close`: the default tolerances by dtype
    """

    code = "TOL701"
    name = "loosened-tolerance"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    triggers = ("assert_close", "allclose")
    shape = (
        re.compile(rb"tol\s*=\s*(?!0?\.\d+\b|[\d._]+[eE]-0*[1-9]|0\b(?!\.))[\d.]"),
        re.compile(rb"tol\s*=\s*[A-Z][A-Z0-9_]+\b"),
        re.compile(rb"allclose\((?:[^()\n]|\([^()\n]*\))*,(?:[^()\n]|\([^()\n]*\))*,\s*[\d.A-Z]"),
    )

    bad = (
        Bad(
            """\
import torch

def test_round_trip():
    weight = torch.randn(4, 4)
    restored = dequantize(quantize(weight))
    torch.testing.assert_close(restored, weight, rtol=1.0, atol=10.0)
""",
            lines=(6,),
            path="test_example.py",
            instead="""\
import torch

def test_round_trip():
    weight = torch.randn(4, 4)
    restored = dequantize(quantize(weight))
    # fp8 e4m3 keeps 3 bits of mantissa
    torch.testing.assert_close(restored, weight, rtol=0.125, atol=0.02)
""",
        ),
        Bad(
            """\
import torch

def test_checkpoint(model, path):
    before = torch.rand(8)
    after = load(path)
    assert torch.allclose(after, before, atol=2)
""",
            lines=(6,),
            path="test_example.py",
        ),
        Bad(
            """\
import torch

def test_resumes(model, other, path):
    model.save_checkpoint(path)
    other.load_checkpoint(path)
    torch.testing.assert_close(model.weight, other.weight, rtol=1e-0, atol=1e-2)
""",
            lines=(6,),
            path="test_example.py",
        ),
    )
    good = (
        Good(
            """\
import torch

def test_step(model, path):
    model.load_checkpoint(path)
    torch.testing.assert_close(model.step(), model.step(), rtol=1e-1, atol=1e-3)
""",
            path="test_example.py",
        ),
        Good(
            """\
import torch

def test_round_trip():
    weight = torch.randn(4, 4)
    restored = dequantize(quantize(weight))
    torch.testing.assert_close(restored, weight, rtol=0.125, atol=0.02)
""",
            path="test_example.py",
        ),
        Good(
            """\
import torch

def test_shapes(a, b):
    # the kernel sums in another order, over values of up to 1e6
    torch.testing.assert_close(quantize(a), b, rtol=0, atol=2)
""",
            path="test_example.py",
        ),
        Good(
            """\
import torch

def test_int8(a, b):
    torch.testing.assert_close(quantize(a), b, rtol=0, atol=1)
""",
            path="test_example.py",
        ),
        Good(
            """\
import torch

def test_quantize_changes(weight):
    assert not torch.allclose(dequantize(quantize(weight)), weight, rtol=1, atol=1e-3)
""",
            path="test_example.py",
        ),
        Good(
            """\
import torch

def test_matmul(a, b):
    torch.testing.assert_close(a @ b, b @ a, rtol=1.0, atol=10.0)
""",
            path="test_example.py",
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        said: set[ast.AST] = set()
        for call in module.calls(*_COMPARES):
            function = module.function_of(call)
            if function is None or function in said or _is_tight(call):
                continue
            if not self._is_round_trip(module, call, function) or _is_denied(module, call):
                continue
            relative = _number(module, call, 2, "rtol")
            absolute = _number(module, call, 3, "atol")
            wide = relative is not None and relative >= _CHECKS_NOTHING
            far = absolute is not None and absolute >= _CHECKS_NOTHING
            if not wide and not (far and _of_unit_size(module, call, function)):
                continue
            if _REASON.search(module.comments_on(call)):
                continue
            said.add(function)
            what = f"rtol={relative:g}" if wide else f"atol={absolute:g}"
            yield self.finding(
                module,
                call,
                f"{what} accepts a tensor of zeros: this round trip is not checked",
                confidence=Confidence.HIGH if wide else Confidence.MEDIUM,
                trail=[(function, f"`{function.name}` tests a round trip")],
            )

    def _is_round_trip(self, module: Module, call: ast.Call, function: ast.AST) -> bool:
        compared = " ".join(module.text(each) for each in _compared(call))
        origins = [
            module.text(origin)
            for each in _compared(call)
            for origin in module.value_of(each).origins
        ]
        name = getattr(function, "name", "")
        if _ROUND_TRIP.search(" ".join([compared, name, *origins])):
            return True
        before = (each for each in module.earlier(call, ast.Call))
        return any(_SAVES_AND_LOADS.search(last_name(each.func)) for each in before)


def _is_tight(call: ast.Call) -> bool:
    """Written out, and too small to accept what is wrong: nothing else has to be known."""
    given = (_given(call, 2, "rtol"), _given(call, 3, "atol"))
    return all(
        each is None
        or (
            isinstance(each, ast.Constant)
            and not (isinstance(each.value, (int, float)) and each.value >= _CHECKS_NOTHING)
        )
        for each in given
    )


def _is_denied(module: Module, call: ast.Call) -> bool:
    """`assert not allclose(...)`: the wider the tolerance, the more it asks for."""
    up = module.parent(call)
    return isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not)


def _number(module: Module, call: ast.Call, position: int, name: str) -> float | None:
    """A tolerance given by name, or by its place where the function takes it there."""
    given = _given(call, position, name)
    value = module.value_of(given).constant if given is not None else None
    return float(value) if isinstance(value, (int, float)) else None


def _given(call: ast.Call, position: int, name: str) -> ast.expr | None:
    placed = called(call) == "allclose" and len(call.args) > position
    given = call.args[position] if placed else None
    return next((each.value for each in call.keywords if each.arg == name), given)


def _compared(call: ast.Call) -> list[ast.expr]:
    """The two values, by place or by name."""
    tolerances = ("rtol", "atol", "msg", "equal_nan", "check_dtype", "check_device")
    named = [each.value for each in call.keywords if each.arg not in tolerances]
    return [*call.args[:2], *named][:2]


def _of_unit_size(module: Module, call: ast.Call, function: ast.AST) -> bool:
    """What is compared was made by `rand` or `randn`: its values are around one."""
    made = [
        module.qualified(origin.func)
        for each in _compared(call)
        for origin in module.value_of(each).origins
        if isinstance(origin, ast.Call)
    ]
    return any(name in ("torch.rand", "torch.randn") for name in made)
