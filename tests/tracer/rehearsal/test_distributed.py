"""Process groups of a rehearsal, in one process; two are in tests/real/rehearsal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402

from tensortrail.tracer.rehearsal.devices.nccl_groups import Asked, place_of  # noqa: E402
from tensortrail.tracer.rehearsal.devices.spec import Spec  # noqa: E402
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal  # noqa: E402

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="torch without distributed")


@pytest.fixture(autouse=True)
def _on_two_simulated_devices() -> Iterator[None]:
    with Rehearsal(Spec(2)):
        yield
        if dist.is_initialized():
            dist.destroy_process_group()


def begin(backend: str | None, **options: Any) -> None:
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1, **options)


def test_nccl_runs_over_gloo_and_that_is_said_once(recwarn: pytest.WarningsRecorder) -> None:
    begin("nccl", device_id=torch.device("cuda:1"))
    said = [str(each.message) for each in recwarn]
    assert len([each for each in said if '"gloo" carries its messages' in each]) == 1, said
    assert dist.get_backend() == "nccl"
    assert dist.get_backend_config() == "cuda:nccl"
    tensor = torch.ones(2, device="cuda:1")
    dist.all_reduce(tensor)
    assert tensor.device == torch.device("cuda:1")
    assert tensor.tolist() == [1, 1]


def test_without_a_name_a_group_is_one_of_nccl() -> None:
    begin(None)
    tensor = torch.ones(2, device="cuda")
    dist.all_reduce(tensor)
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        dist.all_reduce(torch.ones(2))


@pytest.mark.parametrize(
    "collective",
    [
        lambda: dist.broadcast(torch.ones(2), 0),
        lambda: dist.all_gather([torch.ones(2)], torch.ones(2)),
        lambda: dist.all_gather_into_tensor(torch.ones(2), torch.ones(2)),
        lambda: dist.reduce_scatter(torch.ones(2), [torch.ones(2)]),
        lambda: dist.all_reduce(torch.ones(2), group=dist.new_group([0])),
        lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2)),
        lambda: functional_all_reduce(torch.ones(2)),
    ],
)
def test_nccl_takes_no_tensor_of_the_cpu(collective: Callable[[], object]) -> None:
    begin("nccl")
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        collective()


def functional_all_reduce(tensor: Any) -> Any:
    from torch.distributed._functional_collectives import all_reduce

    return all_reduce(tensor, "sum", dist.group.WORLD)


def test_a_group_of_both_takes_both() -> None:
    begin("cpu:gloo,cuda:nccl")
    for device in ("cpu", "cuda"):
        dist.all_reduce(torch.ones(2, device=device))
    assert dist.get_backend_config() == "cpu:gloo,cuda:nccl"


@pytest.mark.parametrize(
    ("collective", "error", "told"),
    [
        (lambda: dist.all_reduce(torch.ones(2, 3, device="cuda").t()), ValueError, "contiguous"),
        (
            lambda: dist.all_gather([torch.ones(2)], torch.ones(2, device="cuda")),
            ValueError,
            "Tensors must be CUDA and dense",
        ),
        (
            lambda: dist.all_reduce(torch.ones(2, dtype=torch.int16, device="cuda")),
            TypeError,
            "not supported for NCCL process group: Short",
        ),
        (dist.monitored_barrier, ValueError, "only implemented for GLOO"),
    ],
)
def test_what_nccl_refuses(
    collective: Callable[[], object], error: type[Exception], told: str
) -> None:
    begin("nccl")
    with pytest.raises(error, match=told):
        collective()


def test_two_ranks_cannot_bring_the_same_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dist.HashStore()
    ranks = [Asked({"cuda": "nccl"}, rank, 3, store) for rank in range(3)]
    for each, index in zip(ranks, (0, 0, 1), strict=True):
        each.store.set(f"rehearsed device of rank {each.rank}", place_of(index))
    ranks[2].compare(1, {0, 1, 2})
    with pytest.raises(dist.DistBackendError, match="rank 0 and rank 1 both on CUDA device 1000"):
        ranks[0].compare(0, {0, 1})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert [place_of(index).split()[-1] for index in (0, 1)] == ["3", "1"]
    monkeypatch.setenv("GROUP_RANK", "1")  # another machine
    assert place_of(0) != place_of(0).replace(" 1 ", "  ")


def test_objects_travel_on_the_current_device() -> None:
    begin("nccl")
    found: list[Any] = [None]
    dist.all_gather_object(found, {"a": 1})
    assert found == [{"a": 1}]
    assert dist.distributed_c10d._get_object_coll_device() == "cuda"
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        dist.broadcast_object_list(found, 0, device=torch.device("cpu"))


def test_what_a_collective_gives_lies_on_the_device() -> None:
    begin("nccl")
    work = dist.all_reduce(torch.ones(2, device="cuda:1"), async_op=True)
    doubled = work.get_future().then(lambda done: done.value()[0] * 2).wait()
    assert doubled.device == work.result()[0].device == torch.device("cuda:1")


def test_groups_are_split_and_collectives_joined() -> None:
    begin("nccl", device_id=torch.device("cuda:1"))
    part = dist.split_group(split_ranks=[[0]])
    tensor = torch.ones(2, device="cuda:1")
    with dist.distributed_c10d._coalescing_manager(part, device=tensor.device):
        dist.all_reduce(tensor, group=part)
    assert tensor.tolist() == [1, 1]
    dist.barrier()


def test_gloo_is_asked_for_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    begin("gloo")
    assert not [each for each in recwarn if "nccl" in str(each.message)]
    gathered = [torch.zeros(2, device="cuda")]
    dist.all_gather(gathered, torch.ones(2, device="cuda"))
    assert gathered[0].tolist() == [1, 1]


@pytest.mark.parametrize("views", [False, True])
def test_replicas_keep_gradients_on_their_device(views: bool) -> None:
    begin("gloo")
    torch.manual_seed(0)
    module = torch.nn.Linear(3, 2).cuda()
    replica = torch.nn.parallel.DistributedDataParallel(
        module, device_ids=[0], gradient_as_bucket_view=views
    )
    for _ in range(3):  # the second pass sorts the buckets anew
        replica.zero_grad()
        replica(torch.ones(4, 3, device="cuda")).sum().backward()
        assert {str(each.grad.device) for each in module.parameters()} == {"cuda:0"}
        assert module.bias.grad.tolist() == [4, 4]


def test_results_of_functional_collectives_stay_on_the_device() -> None:
    from torch.distributed._functional_collectives import all_reduce

    begin("gloo")
    reduced = all_reduce(torch.ones(2, device="cuda"), "sum", dist.group.WORLD)
    assert reduced.device == torch.device("cuda:0")
    assert (reduced + 1).tolist() == [2, 2]


def test_sharded_tensors_draw_random_numbers_on_the_device() -> None:
    """As `fully_shard` needs it: weights made on `meta` get their values on the device."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import Shard, randn

    begin("nccl")
    mesh = init_device_mesh("cuda", (1,))
    torch.manual_seed(3)
    first, second = (randn(4, 4, device_mesh=mesh, placements=[Shard(0)]) for _ in range(2))
    torch.manual_seed(3)
    again = randn(4, 4, device_mesh=mesh, placements=[Shard(0)])
    assert first.device == torch.device("cuda:0")
    assert torch.equal(first.to_local(), again.to_local())
    assert not torch.equal(first.to_local(), second.to_local())
    with torch.device("meta"):
        layer = torch.nn.Linear(4, 4)
    fully_shard(layer, mesh=mesh)
    layer.to_empty(device="cuda")
    layer.reset_parameters()
    layer(torch.ones(2, 4, device="cuda")).sum().backward()
    assert layer.weight.grad.device == torch.device("cuda:0")


def test_shards_draw_from_places_of_their_own() -> None:
    from tensortrail.tracer.rehearsal.devices.sharded_random import Place

    states = []
    for offset in (0, 4, 8):
        place = Place(torch.get_rng_state())
        place.offset = place.offset + offset
        states.append(place.state)
    assert torch.equal(states[0], torch.get_rng_state())
    assert len({bytes(each.tolist()) for each in states}) == 3
