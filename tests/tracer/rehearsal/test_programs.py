"""The same programs as on a machine with GPUs: refused in the same words, or the same values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.tracer.explaining.causes import match, type_name_of
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal
from tests.tracer.rehearsal.legal import LEGAL
from tests.tracer.rehearsal.programs import Legal, Refused, run
from tests.tracer.rehearsal.refused import REFUSED

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*pin_memory.*")]


TWO = parse_spec("cuda:2x8GiB")


@contextmanager
def _recorded(folder: Path) -> Iterator[None]:
    running = begin(folder, Options(rehearse=TWO))
    try:
        yield
    finally:
        running.stop()


@pytest.fixture(params=["", "recorded"])
def _two_gpus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    with _recorded(tmp_path / "run") if request.param else Rehearsal(TWO):
        yield


@pytest.mark.usefixtures("_two_gpus")
@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.name)
def test_refused_in_the_words_of_a_gpu(program: Refused) -> None:
    with pytest.raises(Exception) as caught:
        run(program.source)
    error = caught.value
    assert type(error).__name__ == program.kind, error
    assert program.says in str(error)
    found = match(type_name_of(error), str(error))
    assert (found.cause.name if found else "") == program.cause


@pytest.mark.parametrize("program", LEGAL, ids=lambda program: program.name)
def test_legal_with_the_same_values(program: Legal, tmp_path: Path) -> None:
    expected = run(program.source, ("cpu", "cpu"))
    with Rehearsal(TWO):
        result = run(program.source)
    assert same(result, expected)
    with _recorded(tmp_path / "run"):
        result = run(program.source)
    assert same(result, expected)


def same(result: Any, expected: Any) -> bool:
    assert type(result) is type(expected)
    if isinstance(expected, list):
        return len(result) == len(expected) and all(map(same, result, expected))
    torch.testing.assert_close(result, expected)
    return True


def test_there_are_sixty_and_thirty() -> None:
    assert len({program.name for program in REFUSED}) >= 60
    assert len({program.name for program in LEGAL}) >= 30
