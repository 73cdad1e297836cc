"""Every operation that torch has samples for, on a GPU that is there and on a simulated one.

    python -m benchmarks.gpu_operations [--jobs N] [--output FILE]

Each is called with all tensors on the GPU, in several types, and with one tensor after the other
left on the CPU. Printed is what ends otherwise in the rehearsal: another error, or none, or a
result of another device, type or shape. Values are compared by the tests."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

PARTS = 24
LIMIT = 300
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.bool)
LEFT_BEHIND = 4
"""So many tensors of a call are left on the CPU, one at a time."""
Outcomes = dict[str, str]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--output", type=Path, help="all outcomes, as JSON")
    parser.add_argument("--part", nargs=3, metavar=("KIND", "N", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.part:
        kind, part, file = options.part
        Path(file).write_text(json.dumps(of_part(kind, int(part))), encoding="utf-8")
        return 0
    if not torch.cuda.is_available():
        print("no GPU here: nothing to compare with", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        wanted = [(kind, part, folder) for part in range(PARTS) for kind in ("gpu", "rehearsed")]
        done = list(pool.map(lambda each: in_a_process(*each), wanted))
    found: dict[str, Outcomes] = {"gpu": {}, "rehearsed": {}}
    for (kind, _, _), outcomes in zip(wanted, done, strict=True):
        found[kind] |= outcomes
    if options.output:
        options.output.write_text(json.dumps(found, indent=0), encoding="utf-8")
    show(found["gpu"], found["rehearsed"])
    return 0


def in_a_process(kind: str, part: int, folder: str) -> Outcomes:
    """A failed assertion on a GPU ends all that follows in its process."""
    file = Path(folder) / f"{kind}-{part}.json"
    command = [sys.executable, "-m", "benchmarks.gpu_operations", "--part", kind, str(part)]
    try:
        subprocess.run([*command, str(file)], capture_output=True, timeout=LIMIT, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"part {part}, {kind}: {error}\n{(error.stderr or b'')[-300:]!r}", flush=True)
        return {}
    return dict(json.loads(file.read_text(encoding="utf-8")))


def of_part(kind: str, part: int) -> Outcomes:
    from torch.testing._internal.common_methods_invocations import op_db

    from tensortrail.tracer.rehearsal.devices.spec import parse_spec
    from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

    calls = [each for op in op_db[part::PARTS] for each in calls_of(op)]
    with Rehearsal(parse_spec("cuda")) if kind == "rehearsed" else nullcontext():
        return {name: outcome(op, sample, behind) for name, op, sample, behind in calls}


def calls_of(op: Any) -> Iterator[tuple[str, Any, Any, int | None]]:
    """Name, operation, arguments on the CPU, and the number of the tensor that is left there."""
    full = f"{op.name}.{op.variant_test_name}".rstrip(".")
    for dtype in TYPES:
        sample = first_sample(op, dtype)
        if sample is None:
            continue
        yield f"{full} {dtype}", op, sample, None
        tensors = len(_tensors(sample))
        if dtype is torch.float32 or op.dtypes == {torch.int64}:
            for behind in range(min(tensors, LEFT_BEHIND) if tensors > 1 else 0):
                yield f"{full} {dtype} #{behind} on the CPU", op, sample, behind


def first_sample(op: Any, dtype: torch.dtype) -> Any:
    """Of the first few the one with most tensors, with dimensions if there is such a one: the
    others may lie anywhere. None if there is no sample of the type."""
    try:
        made = list(islice(op.sample_inputs("cpu", dtype, requires_grad=False), 6))
    except Exception:
        return None
    taken = [(each.input, each.args, each.kwargs) for each in made]
    return max(taken, default=None, key=lambda each: (len(_tensors(each)), _have_sizes(each)))


def _tensors(sample: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(sample)[0] if isinstance(leaf, torch.Tensor)]


def _have_sizes(sample: Any) -> bool:
    return all(each.dim() for each in _tensors(sample))


def outcome(op: Any, sample: Any, behind: int | None) -> str:
    leaves, form = tree_flatten(sample)
    numbers = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    stays = None if behind is None else numbers[behind]
    placed = [leaf if n == stays else on_gpu(leaf) for n, leaf in enumerate(leaves)]
    first, args, kwargs = tree_unflatten(placed, form)
    try:
        results = tree_flatten(op(first, *args, **kwargs))[0]
        return ", ".join(told(each) for each in results)
    except Exception as error:
        return f"{type(error).__name__}: {alike(str(error))}"


def on_gpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.cuda()
    named = isinstance(value, (str, torch.device)) and str(value) == "cpu"
    return torch.device("cuda") if named else value


def told(result: Any) -> str:
    if not isinstance(result, torch.Tensor):
        return type(result).__name__
    return f"{result.device.type} {result.dtype} {tuple(result.shape)} {result.layout}"


def alike(message: str) -> str:
    """Without what is of one run, and no more than its first line."""
    return re.sub(r"0x[0-9a-f]+", "N", message.strip().split("\n")[0])[:200]


def show(gpu: Outcomes, rehearsed: Outcomes) -> None:
    both = sorted(gpu.keys() & rehearsed.keys())
    differ = [name for name in both if gpu[name] != rehearsed[name]]
    for name in differ:
        print(f"{name}\n    gpu        {gpu[name]}\n    rehearsed  {rehearsed[name]}")
    ends = [name for name in differ if is_error(gpu[name]) != is_error(rehearsed[name])]
    print(
        f"{len(both)} calls: {len(differ)} end otherwise, {len(ends)} of them by an error or none"
    )


def is_error(told_of: str) -> bool:
    return re.match(r"\w+(Error|Exception)\b", told_of) is not None


if __name__ == "__main__":
    sys.exit(main())
