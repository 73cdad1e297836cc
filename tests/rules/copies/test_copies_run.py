"""Rules about transfers in flight, watching real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Confidence, Severity
from tests.rules.mending import mended
from tests.rules.recorded import WRAPPER, watched

pytestmark = pytest.mark.filterwarnings("ignore:torch.distributed is disabled")

SLOW = """\
import threading
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import FileSystemWriter

go = threading.Event()

class Slow(FileSystemWriter):
    def write_data(self, *args):
        go.wait(20)
        return super().write_data(*args)

def save(path):
    return dcp.async_save(
        {"weight": torch.ones(4)}, checkpoint_id=folder + path, storage_writer=Slow(folder + path)
    )
"""


def test_two_saves_into_one_directory(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        SLOW
        + """\
futures = []
for step in range(2):
    futures.append(
        dcp.async_save(  # flagged
            {"weight": torch.ones(4)},
            checkpoint_id=folder + "/a",
            storage_writer=Slow(folder + "/a"),
        )
    )
go.set()
for future in futures:
    future.exception()  # one of them may well fail: that is the point
""",
        "XFR602",
    )
    assert f"save of {tmp_path}/a was not finished" in seen.only.message
    assert "began to write there too" in seen.only.message
    assert (seen.only.severity, seen.only.confidence) == (Severity.ERROR, Confidence.HIGH)


def test_a_save_that_is_not_awaited_before_another(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        SLOW
        + """\
first = save("/a")
second = dcp.async_save({"weight": torch.ones(4)}, checkpoint_id=folder + "/b")  # flagged
go.set()
first.result(), second.result()
""",
        "XFR602",
    )
    assert (seen.only.severity, seen.only.confidence) == (Severity.WARNING, Confidence.MEDIUM)


def test_a_save_that_is_not_awaited_at_all(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        SLOW
        + """\
dcp.async_save(  # flagged
    {"weight": torch.ones(4)}, checkpoint_id=folder + "/a", storage_writer=Slow(folder + "/a")
)
""",
        "XFR602",
    )
    assert "at the end" in seen.only.message
    assert seen.only.severity is Severity.WARNING


def test_saves_that_are_awaited(tmp_path: Path) -> None:
    source = SLOW + "go.set()\nfor _ in range(2):\n    save('/a').result()\n"
    assert not watched(tmp_path, source, "XFR602").found


def test_a_library_class_is_staged_as_a_plain_tensor(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    seen = watched(
        tmp_path,
        """\
        import torch
        import torch.distributed.checkpoint as dcp
        from torchao.float8.float8_training_tensor import LinearMMConfig
        from torchao.float8.fsdp_utils import WeightWithDynamicFloat8CastTensor as Weight
        weight = Weight(torch.full((64, 64), 3.0), LinearMMConfig(), torch.float8_e4m3fn)
        state = {"weight": torch.nn.Parameter(weight), "bias": torch.nn.Parameter(torch.ones(4))}
        for step in range(2):
            saved = dcp.async_save(state, checkpoint_id=f"{folder}/{step}")  # flagged
            saved.result()
        """,
        "XFR604",
    )
    finding = seen.only
    assert (
        "`weight`, of type `WeightWithDynamicFloat8CastTensor`, is staged as `Tensor`"
        in finding.message
    )
    assert dict(finding.evidence) == {"tensors": "1", "stagings": "2"}
    assert "5: weight made on cpu by torch.full" in seen.steps
    assert "staged on cpu for an asynchronous save" in seen.steps


def test_another_stager_keeps_the_values(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    source = """\
import torch
import torch.distributed.checkpoint as dcp
from torchao.float8.fsdp_utils import LinearMMConfig
from torchao.float8.fsdp_utils import WeightWithDynamicFloat8CastTensor as Weight
state = {"weight": Weight(torch.full((64, 64), 3.0), LinearMMConfig(), torch.float8_e4m3fn)}
dcp.async_save(state, checkpoint_id=folder + "/a").result()"""
    seen = watched(tmp_path, f"{source}  # flagged\n", "XFR604")
    assert "copies the values (16.4 KB) to the CPU" in seen.only.settings[0].why
    after = mended(seen)
    assert "import BlockingAsyncStager\nstate = " in after
    assert "async_stager=BlockingAsyncStager())" in after
    (tmp_path / "again").mkdir()
    loads = """
read = {"weight": torch.zeros(64, 64)}
dcp.load(read, checkpoint_id=folder + "/a")
assert torch.equal(read["weight"], torch.full((64, 64), 3.0))
"""
    unmarked = after.replace("  # flagged", "")
    assert not watched(tmp_path / "again", unmarked + loads, "XFR604").found


def test_tensors_that_are_staged_as_what_they_are(tmp_path: Path) -> None:
    source = (
        WRAPPER
        + """\
import torch.distributed.checkpoint as dcp
layer = torch.nn.Linear(4, 4)
state = {"layer": layer.state_dict(), "p": layer.weight, "b": torch.nn.Buffer(torch.ones(2))}
dcp.async_save(state, checkpoint_id=folder + "/a").result()
"""
    )
    assert not watched(tmp_path, source, "XFR604").found
