"""A layer is replaced after DDP was made."""
import os, torch, torch.nn as nn, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="2")
    dist.init_process_group("gloo")
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    ddp = nn.parallel.DistributedDataParallel(model)
    if rank == 0:
        model[2] = nn.Linear(8, 1)
    opt = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for _ in range(3):
        loss = ddp(torch.randn(8, 4)).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    got = [torch.zeros(8) for _ in range(2)]
    dist.all_gather(got, model[2].weight.detach()[0].contiguous())
    dist.destroy_process_group()
    assert torch.equal(*got), "ranks differ"
if __name__ == "__main__":
    mp.spawn(work, (29517,), nprocs=2)
