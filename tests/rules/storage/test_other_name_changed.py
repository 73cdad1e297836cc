"""STO242, `other-name-changed`: tensors that are changed by a function of the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.judged import findings, severity_in_package

_STEP = """import torch

def step(x: torch.Tensor, by):
    {body}
"""
_CALL = """import torch
from pkg.steps import step

def run(x, by):
    {use}
    seen = torch.zeros(3)
    seen[0] = 1
    return out - x, seen

def states(x, by):
    yield x
    {again}
    yield x
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x.mul_(by)\n    return x", True),
        ("flat = x.view(-1)\n    flat[0] = by\n    return flat", True),
        ("x += by\n    return x[0]", True),
        ("x = x.clone()\n    x.mul_(by)\n    return x", False),
        ("x.mul_(by)\n    return x.sum()", False),
        ("y = x[by]\n    y.mul_(2)\n    return y", False),
    ],
)
def test_a_function_of_another_file(tmp_path: Path, body: str, expected: bool) -> None:
    source = _CALL.format(use="out = step(x, by)", again="x = x + 1")
    steps = _STEP.format(body=body)
    assert (severity_in_package(tmp_path, "STO242", source, steps=steps) is not None) is expected


@pytest.mark.parametrize(
    ("use", "again", "expected"),
    [
        ("out = step(x.clone(), by)", "x = step(x.clone(), by)", False),
        ("out = x\n    x = step(x, by)", "x = x + 1", False),
        ("out = step(x, by)\n    x = x.shape[0]", "x = x + 1", False),
        ("out = by", "x = step(x, by)", True),
        ("out = by", "x = by\n    x = step(by, by)", False),
    ],
)
def test_what_the_caller_does(tmp_path: Path, use: str, again: str, expected: bool) -> None:
    steps = _STEP.format(body="x.mul_(by)\n    return x")
    source = _CALL.format(use=use, again=again)
    assert (severity_in_package(tmp_path, "STO242", source, steps=steps) is not None) is expected


@pytest.mark.parametrize(("default", "count"), [("False", 0), ("True", 1)])
def test_a_function_that_changes_its_argument_if_it_is_asked_to(default: str, count: int) -> None:
    source = f"""
    import torch

    def scaled(x, in_place={default}):
        if in_place:
            x.mul_(2)
            return x
        return x * 2

    def step(loss):
        shown = scaled(loss)
        return shown + 1, loss
    """
    assert len(findings("STO242", source)) == count
