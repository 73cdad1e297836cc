"""The programs on GPUs that are there: what a rehearsal says of them is held against those."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.tracer.explaining.causes import match, type_name_of
from tests.tracer.rehearsal.legal import LEGAL
from tests.tracer.rehearsal.programs import DEVICES, Legal, Refused, run
from tests.tracer.rehearsal.refused import REFUSED
from tests.tracer.rehearsal.test_programs import same

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: nothing to agree with"),
]
HERE = torch.cuda.device_count()


def _needs(devices: int) -> None:
    if devices > HERE:
        pytest.skip(f"needs {devices} GPUs, {HERE} here")


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.name)
def test_a_gpu_says_the_same(program: Refused) -> None:
    _needs(program.devices)
    with pytest.raises(Exception) as caught:
        run(program.source)
    error = caught.value
    found = match(type_name_of(error), str(error))
    said = (type(error).__name__, program.says in str(error), found.cause.name if found else "")
    assert said == (program.kind, True, program.cause), str(error)


@pytest.mark.parametrize("program", LEGAL, ids=lambda program: program.name)
def test_a_gpu_allows_the_same(program: Legal) -> None:
    _needs(program.devices)
    assert same(run(program.source, DEVICES[:HERE]), run(program.source, ("cpu", "cpu")))
