"""Two processes train together on a GPU each, and check themselves against one on the CPU."""

from __future__ import annotations

import sys
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 3, 8


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def data() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.randn(STEPS, BATCH, 8), torch.randint(0, 3, (STEPS, BATCH))


def trained(net: Any, features: Any, labels: Any) -> Any:
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    for inputs, wanted in zip(features, labels, strict=True):
        torch.nn.functional.cross_entropy(net(inputs), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


def replicated(rank: int, features: Any, labels: Any) -> list[Any]:
    net = DistributedDataParallel(model().cuda(), device_ids=[rank])
    trained(net, features, labels)
    return list(net.parameters())


def sharded(rank: int, features: Any, labels: Any) -> list[Any]:
    net = model().cuda()
    for layer in (net[0], net[2], net):
        fully_shard(layer)
    assert net[0].weight.to_local().shape == (8, 8)
    trained(net, features, labels)
    return [parameter.full_tensor() for parameter in net.parameters()]


def flat(rank: int, features: Any, labels: Any) -> list[Any]:
    net = FullyShardedDataParallel(model(), device_id=rank, use_orig_params=True)
    trained(net, features, labels)
    return list(net.state_dict().values())


def unordered(rank: int, features: Any, labels: Any) -> list[Any]:
    """As if FSDP forgot to let its streams wait for each other."""
    torch.cuda.Stream.wait_event = lambda self, event: None
    return sharded(rank, features, labels)


def parallel(rank: int, features: Any, labels: Any) -> list[Any]:
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    net = parallelize_module(model().cuda(), init_device_mesh("cuda", (2,)), plan)
    assert net[0].weight.device == torch.device("cuda", rank)
    trained(net, features, labels)
    return [parameter.full_tensor() for parameter in net.parameters()]


WAYS = {
    "ddp": replicated, "flat": flat, "fsdp": sharded, "fsdp-unordered": unordered, "tp": parallel,
}  # fmt: skip


def main(way: str, backend: str) -> None:
    dist.init_process_group(backend)
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    features, labels = data()
    mine = slice(None) if way == "tp" else slice(rank * BATCH // 2, (rank + 1) * BATCH // 2)
    found = WAYS[way](rank, features[:, mine].cuda(), labels[:, mine].cuda())
    expected = list(trained(model(), features, labels).parameters())
    devices = {str(each.device) for each in found}
    torch.testing.assert_close([each.detach().cpu() for each in found], expected)
    print("rank", rank, "agrees with the CPU on", *devices, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
