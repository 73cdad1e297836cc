"""Two simulated GPUs of 4 GiB."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True, scope="package")
def _one_thread_for_tiny_tensors() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def gpus() -> Iterator[Any]:
    from tensortrail.tracer.rehearsal.devices.spec import parse_spec
    from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

    with Rehearsal(parse_spec("cuda:2x4GiB")) as rehearsal:
        yield rehearsal


@pytest.fixture
def explained(tmp_path: Path) -> Callable[[Callable[[], Any]], str]:
    """What the tracer says of the exception a function raises on simulated GPUs."""
    from tensortrail.tracer.recording.begin import begin
    from tensortrail.tracer.recording.options import Options
    from tensortrail.tracer.rehearsal.devices.spec import parse_spec

    def explanation(mistake: Callable[[], Any]) -> str:
        running = begin(tmp_path / "trail", Options(rehearse=parse_spec("cuda:2x4GiB")))
        try:
            mistake()
        except Exception as error:
            return running.explanations.explained(error)
        finally:
            running.stop()
        raise AssertionError("nothing was raised")

    return explanation
