from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Severity
from tensortrail.rules import Bad, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shared.failures import errors
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.shared.workers import (
    loaders_with_workers,
    moves_to_a_gpu,
    run_in_workers,
    tensors_on_a_gpu,
)

_FORKED = re.compile(
    r"Cannot re-initialize CUDA in forked subprocess|CUDA error: initialization error"
)
CHANGE = (
    "return CPU tensors from the dataset and move the batch in the loop, or start the workers "
    'with `multiprocessing_context="spawn"`'
)


class CudaInForkedWorker(Rule):
    """A forked process uses CUDA, although its parent process has used it before.

    ## What it does
    In code, looks at each `DataLoader` with `num_workers`. Reports

    - `.cuda()`, `.to("cuda")` and `device="cuda"` in code that runs in the workers: `__getitem__`
      and `__iter__` of the dataset, and `collate_fn`;
    - a `TensorDataset` whose tensors are on a GPU.

    In a recorded run, reports the line at which a forked process asks for a GPU.

    ## Why is this bad?
    The first batch raises a RuntimeError: CUDA cannot be used in a fork of a process that has used
    it. The message of the DataLoader hides the line in the traceback of a worker.

    ## What you may see
    ```
    RuntimeError: Cannot re-initialize CUDA in forked subprocess.
    ```

    ## Fix safety
    Unsafe: a recorded run offers to leave the tensor on the CPU, and then the loop has to move it.
    With `multiprocessing_context="spawn"`, workers may use CUDA, but they import the program again.

    ## References
    - pytorch/pytorch documentation, "Multiprocessing best practices"
    """

    code = "DEV516"
    name = "cuda-in-forked-worker"
    since = "0.2.0"
    severity = Severity.ERROR
    proven = False
    triggers = (("DataLoader", "cuda", "num_workers"),)

    bad = (
        Bad(
            """\
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index].to("cuda")

def loader(images):
    return DataLoader(Images(images), batch_size=8, num_workers=4)
""",
            lines=(5,),
            instead="""\
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index]

def loader(images):
    return DataLoader(Images(images), batch_size=8, num_workers=4, pin_memory=True)
""",
        ),
        Bad(
            """\
import torch
from torch.utils.data import DataLoader

DEVICE = torch.device("cuda:0")

def joined(rows):
    return torch.stack(rows).to(DEVICE), torch.zeros(len(rows), device="cuda")

def loader(data, workers):
    return DataLoader(data, num_workers=workers, collate_fn=joined)
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch
from torch.utils.data import DataLoader, TensorDataset

def loader(rows, labels):
    rows = rows.cuda()
    data = TensorDataset(rows, labels)
    return DataLoader(data, batch_size=8, num_workers=2)
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch.utils.data import DataLoader, TensorDataset

def loader(rows, labels):
    data = TensorDataset(rows.cuda(), labels.cuda())
    return DataLoader(data, batch_size=8), DataLoader(data, num_workers=0)
"""
        ),
        Good(
            """\
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __getitem__(self, index):
        return self.images[index].cuda()

def loaders(images, more):
    yield DataLoader(Images(images), batch_size=8)
    yield DataLoader(Images(images), num_workers=0)
    yield DataLoader(Images(images), num_workers=2, multiprocessing_context="spawn")
    for batch in DataLoader(more, num_workers=2):
        yield batch.cuda()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for loader in loaders_with_workers(module):
            for function in run_in_workers(module, loader):
                for call in moves_to_a_gpu(module, function):
                    yield self._in_a_worker(module, loader, call)
            held = next(tensors_on_a_gpu(module, loader), None)
            if held is not None:
                yield self.finding(
                    module,
                    loader,
                    f"`{one_line(module, held)}` is on a GPU, and the workers that are forked here "
                    "read parts of it: CUDA cannot be used there",
                    trail=[(module.placement_at(held).by, "moved to the GPU here")],
                )

    def _in_a_worker(self, module: Module, loader: ast.Call, call: ast.Call) -> Finding:
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` runs in the workers that line {loader.lineno} forks: CUDA "
            "cannot be used there once the program has used it",
            trail=[(loader, "forks workers"), (call, "uses CUDA in each of them")],
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, _FORKED):
            event = events[0]
            where = f" in `{event.site.function}`" if event.site and event.site.function else ""
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}`{where} uses CUDA in a forked process, which is "
                "not possible after the parent has used it",
                fixes=[_left_on_cpu(timeline, event)],
            )


def _left_on_cpu(timeline: Timeline, event: Event) -> Fix:
    """The expression without the move: what a worker returns is moved in the loop."""
    name = event.op.rpartition(".")[2]
    call = timeline.call(event.site, name) if event.site and name in ("to", "cuda") else None
    head, found, _ = call.source.rpartition(f".{name}(") if call else ("", "", "")
    edit = Edit(call, head) if call and found else None
    return edited(timeline, CHANGE, edit)
