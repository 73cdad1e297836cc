"""Classes that wrap a model to run it on several GPUs, under each name they are imported by."""

AVERAGING = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
)
"""Each process has the whole model, and the gradients of all are averaged."""
COPYING = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel")
"""One process, which copies the model to its GPUs at each call."""
