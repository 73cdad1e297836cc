"""Every operation torch has samples for gives the same bits with a recording as without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # torch's own test helpers need it

from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tests.parts import first_only  # noqa: E402

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore"),  # the samples use what is deprecated too
]
SAMPLES = 2
PARTS = 32


def samples(op: Any) -> Iterator[tuple[Any, Any]]:
    made = op.sample_inputs("cpu", torch.float32, requires_grad=False)
    for place, sample in enumerate(made):
        if place == SAMPLES:
            return
        yield place, sample


def outcome(op: Any, sample: Any) -> Any:
    """What the operation gives on a copy of the sample, or how it fails."""
    copied = sample.transform(lambda x: x.clone() if type(x) is torch.Tensor else x)
    torch.manual_seed(7)
    try:
        return op(copied.input, *copied.args, **copied.kwargs)
    except Exception as error:
        return (type(error).__name__, str(error))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if (one.dtype, one.shape, one.layout) != (other.dtype, other.shape, other.layout):
            return False
        if one.layout != torch.strided:
            return same(one.to_dense(), other.to_dense())
        if one.is_complex():
            one, other = (
                torch.view_as_real(one.resolve_conj()),
                torch.view_as_real(other.resolve_conj()),
            )
        nan = one.is_floating_point()
        return bool(torch.allclose(one, other, rtol=0, atol=0, equal_nan=nan))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(same(*pair) for pair in pairs)
    return bool(one == other) or type(one) is type(other)


def operations(part: int) -> list[Any]:
    from torch.testing._internal import common_methods_invocations as invocations

    wanted = [op for op in invocations.op_db if torch.float32 in op.dtypes]
    unsettled = ("empty", "new_empty")  # what they give is whatever lay there
    return [op for op in wanted if not any(word in op.name for word in unsettled)][part::PARTS]


@pytest.mark.parametrize("part", first_only(PARTS))
def test_results_are_bit_identical(tmp_path: Path, part: int) -> None:
    taken = [(op, sample) for op in operations(part) for _, sample in samples(op)]
    plain = [outcome(op, sample) for op, sample in taken]
    again = [outcome(op, sample) for op, sample in taken]
    running = begin(tmp_path / "run")
    try:
        traced = [outcome(op, sample) for op, sample in taken]
    finally:
        running.stop()
    assert not running.trouble
    assert len(taken) > 25
    settled = [same(*pair) for pair in zip(plain, again, strict=True)]
    differing = {
        op.name
        for (op, _), one, other, fixed in zip(taken, plain, traced, settled, strict=True)
        if fixed and not same(one, other)
    }
    assert differing == set()
