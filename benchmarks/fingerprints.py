"""Fingerprints of a large tensor, beside reading it once, torch's own hash and SHA-256, in one run.

python benchmarks/fingerprints.py [--megabytes N] [--rounds N] [--device cuda] [--threads 1]

With one thread the time is that of the processor, so that other work on the machine counts less."""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable

import torch

from tensortrail.tracer.audit.fingerprints import fingerprint_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    for dtype in (torch.bfloat16, torch.float32):
        measure(options.megabytes * 1_000_000, dtype, options.device, options.rounds)


def measure(nbytes: int, dtype: torch.dtype, device: str, rounds: int) -> None:
    whole = torch.randn(1024, 1024).to(dtype)
    copies = max(1, nbytes // (whole.numel() * whole.element_size()))
    tensor = whole.repeat(copies, 1).to(device)
    words = tensor.view(-1).view(torch.int64)
    works: dict[str, Callable[[], object]] = {
        "read once (sum of its words)": words.sum,
        "fingerprint": lambda: fingerprint_of(tensor),
        "torch.hash_tensor": lambda: torch.hash_tensor(tensor),
        "torch.hash_tensor of its words": lambda: torch.hash_tensor(words),
        "SHA-256": lambda: hashlib.sha256(memoryview(words.cpu().numpy())).digest(),
    }
    size = tensor.numel() * tensor.element_size() / 1e9
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):  # in turn, so that all see the same load of the machine
        for name, work in works.items():
            best[name] = min(best[name], seconds(work, device))
    print(f"{size:.2f} GB of {dtype} on {device}")
    reading = best["read once (sum of its words)"]
    for name, taken in best.items():
        print(f"  {name:32} {size / taken:7.2f} GB/s  {reading / taken:5.2f} of reading it")


def seconds(work: Callable[[], object], device: str) -> float:
    if device != "cpu":
        torch.cuda.synchronize()
    clock = time.thread_time if alone(device) else time.perf_counter
    start = clock()
    work()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - start


def alone(device: str) -> bool:
    """Whether one thread does all the work."""
    return device == "cpu" and torch.get_num_threads() == 1


if __name__ == "__main__":
    main()
