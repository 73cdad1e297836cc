"""Saves of several ranks, of spawned processes and of accelerate's whole state are judged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.reading.verified_saves import Save, saves
from tests import warm
from tests.tracer.ranks import together

pytestmark = [pytest.mark.real, pytest.mark.complete]


def saved(folder: Path) -> dict[str, Save]:
    """Each was judged once."""
    found = list(saves(open_run(folder / "run")))
    by_name = {Path(each.path).name: each for each in found}
    assert len(by_name) == len(found)
    return by_name


def run(folder: Path, source: str) -> str:
    (folder / "prog.py").write_text(source)
    trace = ["-m", "tensortrail", "trace", "--directory", "run", "--verify-saves", "prog.py"]
    done = warm.run(trace, folder)
    assert not done.returncode, done.stderr
    return done.stderr


RANKS = """\
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

dist.init_process_group("gloo")
rows = distribute_tensor(torch.ones(6, 4), init_device_mesh("cpu", (2,)), [Shard(0)])
dcp.save({"rows": rows, "step": 3}, checkpoint_id="both")
wrapped = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
if dist.get_rank() == 0:
    torch.save(wrapped.state_dict(), "first.pt")
torch.save(wrapped.module.state_dict(), f"of_{dist.get_rank()}.pt")
dist.barrier()
dist.destroy_process_group()
"""


def test_what_two_ranks_write_together_is_judged_once(tmp_path: Path) -> None:
    ranks = together(tmp_path, RANKS, "--verify-saves")
    assert not any(rank.returncode for rank in ranks), [rank.stderr for rank in ranks]
    found = saved(tmp_path)
    assert found.keys() == {"both", "first.pt", "of_0.pt", "of_1.pt"}
    assert found["both"].writer == "dcp.save"
    assert found["both"].site is not None
    assert found["both"].site.line == 7
    assert all(found[name].fine for name in ("both", "of_0.pt", "of_1.pt"))
    assert found["first.pt"].found == ("CKP864",)
    assert "4 saves verified, 1 with findings" in ranks[0].stderr + ranks[1].stderr


SPAWNED = """\
import multiprocessing, torch

def work(number):
    model = torch.nn.Linear(2, 2)
    torch.save(model.state_dict(), f"of_{number}.pt")
    torch.save(torch.nn.DataParallel(model).state_dict(), f"wrapped_{number}.pt")

if __name__ == "__main__":
    torch.save(torch.ones(2), "own.pt")
    context = multiprocessing.get_context(METHOD)
    workers = [context.Process(target=work, args=(number,)) for number in range(2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
        assert not each.exitcode
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_what_other_processes_write_is_judged(tmp_path: Path, method: str) -> None:
    if method == "fork" and sys.platform != "linux":
        pytest.skip("there is no fork here")
    told = run(tmp_path, SPAWNED.replace("METHOD", repr(method)))
    found = saved(tmp_path)
    assert found.keys() == {"own.pt", "of_0.pt", "of_1.pt", "wrapped_0.pt", "wrapped_1.pt"}
    assert [name for name, each in sorted(found.items()) if not each.fine] == [
        "wrapped_0.pt", "wrapped_1.pt",
    ]  # fmt: skip
    site = found["wrapped_1.pt"].site
    assert site is not None
    assert site.line == 6
    assert "5 saves verified, 2 with findings" in told


STATE = """\
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 4)
model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
accelerator.backward(model(torch.ones(2, 4)).sum())
optimizer.step()
accelerator.save_state("state")
accelerator.save_state("pickled", safe_serialization=False)
with torch.no_grad():
    model.weight = torch.nn.Parameter(model.weight.to("meta"))
accelerator.save_state("lost", safe_serialization=False)
"""


def test_the_state_of_accelerate_is_judged_as_one(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    run(tmp_path, STATE)
    found = saved(tmp_path)
    assert list(found) == ["state", "pickled", "lost"]
    assert found["state"].fine
    assert found["pickled"].fine
    assert found["lost"].found == ("CKP814",)
    assert found["lost"].site is not None
    assert found["lost"].site.line == 13
