"""FSDP2, DDP and DTensor on gloo: the same losses, weights and states with a recording."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import warm

pytestmark = pytest.mark.long

torch = pytest.importorskip("torch")

BEFORE = """
import hashlib, os, sys
from pathlib import Path
import torch, torch.distributed as dist
from tensortrail.tracer.recording.begin import begin
from tests.tracer.transparent.twice import same

def trained(model, loss, steps=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for step in range(steps):
        torch.manual_seed(10 * step + dist.get_rank())
        made = loss(model, torch.randn(4, 8))
        optimizer.zero_grad()
        made.backward()
        optimizer.step()
        losses.append(made.detach().clone())
    return losses

def full(model):
    whole = {key: each.full_tensor() if hasattr(each, "full_tensor") else each
             for key, each in model.state_dict().items()}
    return {key: each.detach().clone() for key, each in whole.items()}

def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))

def square(model, x):
    return model(x).square().mean()
"""
PROGRAMS = """
def fsdp2():
    from torch.distributed.fsdp import fully_shard
    model = net()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    return trained(model, square), full(model)

def ddp():
    model = torch.nn.parallel.DistributedDataParallel(net())
    losses = trained(model, square)
    with model.no_sync():
        square(model, torch.ones(1, 8)).backward()
    return losses, full(model)

def dtensor():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(0)
    x = distribute_tensor(torch.randn(4, 8, requires_grad=True), mesh, [Shard(0)])
    w = distribute_tensor(torch.randn(8, 4, requires_grad=True), mesh, [Shard(1)])
    y = (x @ w).redistribute(mesh, [Replicate()])
    y.sum().backward()
    moved = y.to(torch.float64).clone().detach().to_local()
    local = x.grad.to_local() if x.grad is not None else None
    return y.full_tensor().detach(), moved, local, str(y.placements), x.to_local().detach()

def collectives():
    x = torch.full((3,), float(dist.get_rank()))
    dist.all_reduce(x)
    parts = [torch.empty(3) for _ in range(2)]
    dist.all_gather(parts, x)
    things = [None, None]
    dist.all_gather_object(things, {"rank": dist.get_rank()})
    return x, parts, things

def checkpoint():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import fully_shard
    model = net()
    fully_shard(model)
    place = sys.argv[2] + "-checkpoint"
    dcp.save(model.state_dict(), checkpoint_id=place)
    with torch.no_grad():
        for each in model.parameters():
            each.zero_()
    state = model.state_dict()
    dcp.load(state, checkpoint_id=place)
    return full(model)

def written(place):
    # But for the file that holds a new identity each time.
    dist.barrier()
    files = sorted(each for each in Path(place).iterdir() if each.suffix == ".distcp")
    assert files
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in files}

def bytes_of_checkpoints():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import fully_shard
    model = fully_shard(net())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    square(model, torch.ones(2, 8)).backward()
    optimizer.step()
    place = sys.argv[2] + "-bytes"
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": 3}
    dcp.save(state, checkpoint_id=place)
    dcp.async_save(state, checkpoint_id=place + "-later").result()
    return written(place), written(place + "-later")

def refusals():
    import torch.distributed.checkpoint as dcp
    from torch.distributed.fsdp import fully_shard
    place, found = sys.argv[2] + "-refusals", []
    def attempt(call, *args, **kwargs):
        try:
            call(*args, **kwargs)
        except BaseException as error:
            found.append((type(error).__name__, str(error).splitlines()[-1]))
    model = fully_shard(net())
    dcp.save({"w": torch.ones(2)}, checkpoint_id=place)
    attempt(dcp.load, {"other": torch.ones(2)}, checkpoint_id=place)
    attempt(dcp.load, {"w": torch.ones(3)}, checkpoint_id=place)
    attempt(lambda: dcp.async_save({"w": lambda: 0}, checkpoint_id=place).result())
    attempt(fully_shard, torch.ones(2))
    attempt(fully_shard, model)
    attempt(model.to_empty, device="nowhere")
    with torch.device("meta"):
        attempt(fully_shard(torch.nn.Linear(2, 2)), torch.ones(1, 2))
    return found

def helpers():
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions, get_model_state_dict, get_optimizer_state_dict, set_model_state_dict)
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = net()
    for layer in (*model, model):
        fully_shard(layer, mp_policy=policy, reshard_after_forward=True)
    losses = trained(model, square)
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=whole)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, {k: v + 1 for k, v in state.items()}, options=options)
    return losses, dict(state), full(model)

def tensor_parallel():
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (
        ColwiseParallel, RowwiseParallel, parallelize_module)
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = fully_shard(parallelize_module(net(), mesh["tp"], plan), mesh=mesh["dp"])
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    return trained(model, lambda model, _: square(model, x)), full(model)

def _reducing():
    from torch._dynamo.testing import CompileCounter
    counter = CompileCounter()
    @torch.compile(backend=counter)
    def doubled(x):
        y = x * 2
        dist.all_reduce(y)
        return y + 1
    return doubled, counter

BEFORE_ALL = []

def compiled():
    if not BEFORE_ALL:
        BEFORE_ALL.append(_reducing())
        BEFORE_ALL[0][0](torch.ones(3))
    told = []
    for doubled, counter in (_reducing(), BEFORE_ALL[0]):
        results = [doubled(torch.ones(3)) for _ in range(2)]
        told.append((results, counter.frame_count, counter.op_count))
    return told

def replaced():
    from torch.distributed.fsdp import fully_shard
    model = fully_shard(net())
    first = square(model, torch.ones(1, 8)).detach()
    model[0].weight = torch.nn.Parameter(torch.zeros_like(model[0].weight))
    model[2].weight.data = torch.zeros_like(model[2].weight.data)
    return first, square(model, torch.ones(1, 8)).detach()
"""
NAMES = ["fsdp2", "ddp", "dtensor", "collectives", "checkpoint", "bytes_of_checkpoints",
         "refusals", "helpers", "tensor_parallel", "compiled", "replaced"]  # fmt: skip
AFTER = """
def main(rank, file, directory, *names):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    for name in names:
        program = globals()[name]
        alone = program()
        running = begin(directory)
        traced = program()
        running.stop()
        after = program()
        fine = not running.trouble and same(alone, traced) and same(alone, after)
        told = "the same" if fine else (running.trouble, alone, traced, after)
        os.write(1, f"{name} {told}\\n".encode())
    dist.destroy_process_group()

if __name__ == "__main__":
    import torch.multiprocessing as processes
    processes.start_processes(main, sys.argv[1:], nprocs=2, start_method="fork")
"""
HERE = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the two ranks say about each program, one line each."""
    directory = tmp_path_factory.mktemp("ranks")
    script = directory / "program.py"
    script.write_text(BEFORE + PROGRAMS + AFTER, encoding="utf-8")
    command = [str(script), str(directory / "meeting"), str(directory / "run"), *NAMES]
    env = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    done = warm.run(command, directory, env=env, timeout=100)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(list((directory / "run").iterdir())) >= 2
    return done.stdout.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_both_ranks_get_the_same(name: str, told: list[str]) -> None:
    assert [line for line in told if line.startswith(name)] == [f"{name} the same"] * 2
