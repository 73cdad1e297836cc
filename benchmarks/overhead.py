"""What recording costs a program, beside its peers: interleaved, minima, ratios of one run.

    python benchmarks/overhead.py [--rounds N] [--device cuda] [WORK...]

Every contestant runs the same work on the same model, which was made under each of them once.
Peers that are not installed are named and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.util
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import tensortrail

Work = Callable[[], Any]


class Empty(TorchFunctionMode):  # type: ignore[misc]
    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def own() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder, tensortrail.trace(directory=folder):
        yield


def debug_mode() -> AbstractContextManager[Any]:
    from torch.utils._debug_mode import DebugMode

    mode: AbstractContextManager[Any] = DebugMode()
    return mode


def profiler() -> AbstractContextManager[Any]:
    cpu = torch.profiler.ProfilerActivity.CPU
    found: AbstractContextManager[Any] = torch.profiler.profile(activities=[cpu])
    return found


@contextlib.contextmanager
def mem_tracker() -> Iterator[None]:
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.optim.optimizer import register_optimizer_step_post_hook

    tracker = MemTracker()
    # It refuses a second step without.
    handle = register_optimizer_step_post_hook(lambda *_: tracker.reset_mod_stats())
    try:
        with tracker:
            yield
    finally:
        handle.remove()


def viztracer() -> AbstractContextManager[Any]:
    from viztracer import VizTracer  # type: ignore[import-not-found]

    tracer: AbstractContextManager[Any] = VizTracer(verbose=0, tracer_entries=5_000_000)
    return tracer


CONTESTANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "nothing": contextlib.nullcontext,
    "empty mode": Empty,
    "tensortrail": own,
    "DebugMode": debug_mode,
    "profiler": profiler,
    "MemTracker": mem_tracker,
    "viztracer": viztracer,
}


def operations(device: str) -> Work:
    x = torch.ones(4, device=device)

    def work() -> None:
        y = x
        for _ in range(3000):
            y = y + x

    return work


def small(width: int) -> torch.nn.Module:
    layer = torch.nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def training(width: int, steps: int, device: str) -> Work:
    with own():
        model = small(width).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        data = torch.randn(4, 32, width, device=device)

    def work() -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()

    return work


def moving(device: str) -> Work:
    model = small(64)
    there, back = (torch.float64, torch.float32) if device == "cpu" else (device, "cpu")

    def work() -> None:
        for _ in range(10):
            model.to(there)
            model.to(back)
        small(64).to("meta")

    return work


def saving(folder: Path) -> Work:
    model = small(64)

    def work() -> None:
        for _ in range(3):
            torch.save(model.state_dict(), folder / "state.pt")
            model.load_state_dict(torch.load(folder / "state.pt"))

    return work


def saving_distributed(folder: Path) -> Work:
    import torch.distributed.checkpoint as dcp

    model = small(64)

    def work() -> None:
        writer = dcp.FileSystemWriter(folder / "dcp")
        dcp.save({"model": model.state_dict()}, storage_writer=writer, no_dist=True)

    return work


def works(folder: Path, device: str) -> dict[str, Callable[[], Work]]:
    return {
        "operations": lambda: operations(device),
        "train-64": lambda: training(64, 4, device),
        "train-512": lambda: training(512, 2, device),
        "model.to": lambda: moving(device),
        "save-load": lambda: saving(folder),
        "dcp-save": lambda: saving_distributed(folder),
    }


def measured(work: Work, contestants: list[str], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(rounds):
        # Nobody always runs after the same neighbour.
        for name in contestants[turn % len(contestants) :] + contestants[: turn % len(contestants)]:
            with CONTESTANTS[name]():
                work()
                gc.collect()
                waited()
                before = time.perf_counter()
                work()
                waited()
                best[name] = min(best[name], time.perf_counter() - before)
    return best


def waited() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("works", nargs="*", metavar="WORK")
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--device", default="cpu", help="where the work is done")
    options = parser.parse_args()
    torch.set_num_threads(1)
    contestants = [*CONTESTANTS]
    if importlib.util.find_spec("viztracer") is None:
        print("viztracer is not here: pip install viztracer")
        contestants.remove("viztracer")
    folder = Path(tempfile.mkdtemp())
    print(f"{'ms, and as a ratio to nothing':<30}" + "".join(f"{name:>19}" for name in contestants))
    for name, make in works(folder, options.device).items():
        if not options.works or name in options.works:
            show(name, measured(make(), contestants, options.rounds))
    shutil.rmtree(folder)


def show(name: str, best: dict[str, float]) -> None:
    nothing = best["nothing"]
    cells = (f"{best[each] * 1e3:>12.2f}{best[each] / nothing:>6.2f}x" for each in best)
    print(f"{name:<30}" + "".join(cells))
    empty, ours, debug = (best[each] for each in ("empty mode", "tensortrail", "DebugMode"))
    share = (ours - nothing) / (debug - nothing)
    print(
        f"{'':<12}tensortrail / empty mode {ours / empty:.3f}, overhead / DebugMode's {share:.3f}"
    )


if __name__ == "__main__":
    main()
