"""Work of several streams, in programs on simulated GPUs: what is ordered, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Confidence, Severity
from tests.rules.recorded import SIMULATED, watched

pytestmark = pytest.mark.long

START = """\
import torch
side = torch.cuda.Stream()
main = torch.cuda.current_stream()
x = torch.randn(64, 64, device="cuda")
torch.cuda.synchronize()
"""
PREFETCHER = """\
import torch

class Prefetcher:
    def __init__(self, batches):
        self.batches, self.stream = iter(batches), torch.cuda.Stream()
        self.mean = torch.tensor([0.5]).cuda()
        self.load()

    def load(self):
        batch = next(self.batches, None)
        if batch is None:
            self.next = None
            return
        with torch.cuda.stream(self.stream):
            self.next = batch.cuda(non_blocking=True).sub_(self.mean)

    def __call__(self):
        WAIT
        batch = self.next
        if batch is not None:
            KEEP
        self.load()
        return batch

batches = torch.randn(6, 8, 16)
loader = Prefetcher(torch.utils.data.DataLoader(batches, batch_size=None, pin_memory=True))
model = torch.nn.Linear(16, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch = loader()
while batch is not None:
    optimizer.zero_grad()
    model(batch).square().sum().backward()  # USED
    optimizer.step()
    batch = loader()
"""
WAIT = "torch.cuda.current_stream().wait_stream(self.stream)"
KEEP = "batch.record_stream(torch.cuda.current_stream())"
WARM_UP = (
    START
    + """\
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
BEFORE
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
AFTER
for _ in range(2):
    optimizer.zero_grad(set_to_none=True)
    model(x).sum().backward()  # TRAINED
    optimizer.step()
"""
)

HOOKED = """\
last = torch.cuda.Stream()
w = torch.randn(64, 64, device="cuda", requires_grad=True)
torch.cuda.synchronize()
reduced = []
def reduces(grad):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        reduced.append(grad.mul(2))
    last.wait_stream(side)
"""
LAST = "with torch.cuda.stream(last):\n    reduced[0].sum()\n"

RACES = {
    "read, and the write is not waited for": (
        "y = x.mul(2)\nwith torch.cuda.stream(side):\n    z = y.sum()  # flagged\n"
    ),
    "read on the default stream": (
        "with torch.cuda.stream(side):\n    y = x.mul(2)\nz = y.sum()  # flagged\n"
    ),
    "a copy to the device in the background": (
        "host = torch.ones(64).pin_memory()\nwith torch.cuda.stream(side):\n"
        "    y = host.to('cuda', non_blocking=True)\ny.add_(1)  # flagged\n"
    ),
    "written while another stream reads": (
        "side.wait_stream(main)\nwith torch.cuda.stream(side):\n    z = x.sum()\n"
        "x.zero_()  # flagged\n"
    ),
    "written by both": ("with torch.cuda.stream(side):\n    x.zero_()\nx.fill_(1)  # flagged\n"),
    "one of a list": (
        "y = [x.mul(2), x]\nwith torch.cuda.stream(side):\n"
        "    torch._foreach_add_(y, 1)  # flagged\n"
    ),
    "an event that was recorded too early": (
        "done = torch.cuda.Event()\nside.record_event(done)\nwith torch.cuda.stream(side):\n"
        "    y = x.mul(2)\ndone.wait()\nz = y.sum()  # flagged\n"
    ),
    "an event that was never recorded": (
        "y = x.mul(2)\nside.wait_event(torch.cuda.Event())\nwith torch.cuda.stream(side):\n"
        "    z = y.sum()  # flagged\n"
    ),
    "the wrong stream was waited for": (
        "other = torch.cuda.Stream()\nwith torch.cuda.stream(side):\n    y = x.mul(2)\n"
        "main.wait_stream(other)\nz = y.sum()  # flagged\n"
    ),
    "made before any stream was": (
        "y = torch.ones(3, device='cuda')\nwith torch.cuda.stream(torch.cuda.Stream()):\n"
        "    y.sum()  # flagged\n"
    ),
    "views that overlap": (
        "with torch.cuda.stream(side):\n    x[:4].zero_()\nx[3:5].sum()  # flagged\n"
    ),
    "a thread has a current stream of its own": (
        "import threading\ny = []\n"
        "def work():\n    y.append(x.mul(2))\n"
        "with torch.cuda.stream(side):\n    thread = threading.Thread(target=work)\n"
        "    thread.start()\n    thread.join()\n    y[0].sum()  # flagged\n"
    ),
    "gradients on another stream": (
        "w = torch.randn(64, 64, device='cuda', requires_grad=True)\ntorch.cuda.synchronize()\n"
        "with torch.cuda.stream(side):\n    w.mul(x).sum().backward()\n"
        "w.grad.norm()  # flagged\n"
    ),
    "a file in the background": (
        "with torch.cuda.stream(side):\n    y = x.mul(2)\ny.cpu()  # flagged\n"
    ),
    "memory of the other stream, freed": (
        "with torch.cuda.stream(side):\n    y = x.mul(2)\nmain.wait_stream(side)\n"
        "z = y.sum()  # flagged\ndel y\nwith torch.cuda.stream(side):\n    x.mul(3)\n"
    ),
    "memory of the default stream, freed": (
        "y = x.mul(2)\nside.wait_stream(main)\nwith torch.cuda.stream(side):\n"
        "    z = y.sum()  # flagged\ndel y\nfresh = torch.empty(64, device='cuda')\n"
    ),
    "memory kept for the wrong stream": (
        "with torch.cuda.stream(side):\n    y = x.mul(2)\n"
        "    y.record_stream(torch.cuda.current_stream())\nmain.wait_stream(side)\n"
        "z = y.sum()  # flagged\ndel y\nwith torch.cuda.stream(side):\n    x.mul(3)\n"
    ),
    "a storage that is emptied": (
        "y = x.mul(2)\nside.wait_stream(main)\nwith torch.cuda.stream(side):\n"
        "    z = y.sum()  # flagged\ny.untyped_storage().resize_(0)\nx.mul(3)\n"
    ),
    "a stream entered in a backward pass, not waited for": (
        HOOKED + "def reads(grad):\n    reduces(grad)\n    reduced[0].sum()  # flagged\n"
        "y = w.mul(x)\ny.register_hook(reads)\ny.sin().sum().backward()\n"
    ),
}
ORDERED = {
    "a stream waits": (
        "y = x.mul(2)\nside.wait_stream(main)\nwith torch.cuda.stream(side):\n    z = y.sum()\n"
        "main.wait_stream(side)\nz.add_(1)\ny.zero_()\n"
    ),
    "an event": (
        "y = x.mul(2)\ndone = main.record_event()\nside.wait_event(done)\n"
        "with torch.cuda.stream(side):\n    z = y.sum()\n    done.record()\ndone.wait()\nz.item()\n"
    ),
    "through a third stream": (
        "third = torch.cuda.Stream()\ny = x.mul(2)\nthird.wait_stream(main)\n"
        "side.wait_stream(third)\nwith torch.cuda.stream(side):\n    z = y.sum()\n"
    ),
    "the host waits for": (
        "y = x.mul(2)\ntorch.cuda.synchronize()\nwith torch.cuda.stream(side):\n    z = y.sum()\n"
        "side.synchronize()\nz.add_(1)\n"
    ),
    "the host waits for an event": (
        "done = torch.cuda.Event()\nwith torch.cuda.stream(side):\n    y = x.mul(2)\n"
        "    done.record()\ndone.synchronize()\ny.sum()\n"
    ),
    "the host hears that it is done": (
        "with torch.cuda.stream(side):\n    y = x.mul(2)\nwhile not side.query():\n    pass\n"
        "y.sum()\n"
    ),
    "a copy that blocks": (
        "y = torch.ones(3).cuda()\nwith torch.cuda.stream(side):\n    z = y.mul(2)\n"
        "    host = z.cpu()\nz.add_(1)\n"
    ),
    "a value that is read": (
        "y = x.mul(2)\ny.sum().item()\nwith torch.cuda.stream(side):\n    y.sum()\n"
    ),
    "a choice by values": (
        "y = x.mul(2)\ny.nonzero()\nwith torch.cuda.stream(side):\n    y[y > 0].sum()\ny.add_(1)\n"
    ),
    "only reads": "with torch.cuda.stream(side):\n    y = x.sum()\nz = x.sum()\n",
    "only looks": (
        "y = x.mul(2)\nwith torch.cuda.stream(side):\n    z = torch.zeros_like(y.view(-1)[:4])\n"
        "    y.shape, y.detach().t(), y.untyped_storage().nbytes()\n"
    ),
    "other parts of one buffer": (
        "with torch.cuda.stream(side):\n    x[:32].zero_()\n    x[:, :1][40:].zero_()\n"
        "x[32:40].fill_(1)\n"
    ),
    "columns of one buffer": (
        "with torch.cuda.stream(side):\n    x[:, ::2].zero_()\nx[:, 1::2].fill_(1)\n"
    ),
    "memory that another stream fills": (
        "y = torch.empty(64, 64, device='cuda')\nwith torch.cuda.stream(side):\n"
        "    y.copy_(x)\nmain.wait_stream(side)\ny.sum()\n"
    ),
    "an older stream is current again": (
        "with torch.cuda.stream(side):\n    with torch.cuda.stream(main):\n        y = x.mul(2)\n"
        "z = y.sum()\n"
    ),
    "two GPUs": (
        "y = x.mul(2).to('cuda:1')\nz = y.mul(2).to('cuda:0')\nwith torch.cuda.stream(side):\n"
        "    side.wait_stream(main)\n    (z * x).to('cuda:1').sum().item()\n"
    ),
    "memory kept for the stream": (
        "with torch.cuda.stream(side):\n    y = x.mul(2)\nmain.wait_stream(side)\n"
        "z = y.sum()\ny.record_stream(main)\ndel y\nwith torch.cuda.stream(side):\n    x.mul(3)\n"
    ),
    "memory freed after its stream waited": (
        "y = x.mul(2)\nside.wait_stream(main)\nwith torch.cuda.stream(side):\n    z = y.sum()\n"
        "main.wait_stream(side)\ndel y\nfresh = torch.empty(64, device='cuda')\n"
    ),
    "memory freed, and its stream waits before it gives it away": (
        "y = x.mul(2)\nside.wait_stream(main)\nwith torch.cuda.stream(side):\n    z = y.sum()\n"
        "del y\nmain.wait_stream(side)\nfresh = torch.empty(64, device='cuda')\n"
    ),
    "memory too small for what comes": (
        "y = torch.ones(4, device='cuda')\nside.wait_stream(main)\n"
        "with torch.cuda.stream(side):\n    z = y.sum()\ndel y\nfresh = x.mul(2)\n"
    ),
    "a backward pass runs where the forward pass ran": (
        "w = torch.randn(64, 64, device='cuda', requires_grad=True)\ntorch.cuda.synchronize()\n"
        "with torch.cuda.stream(side):\n    loss = w.mul(x).relu().sum()\n"
        "loss.backward()\nw.grad.norm()\n"
    ),
    "backward passes of several threads": (
        "import threading\ndef work():\n    with torch.cuda.stream(torch.cuda.Stream()):\n"
        "        w = torch.randn(64, 64, device='cuda', requires_grad=True)\n"
        "        (w @ w).sum().backward()\n        w.grad.norm().item()\n"
        "threads = [threading.Thread(target=work) for _ in range(3)]\n"
        "[each.start() for each in threads]\n[each.join() for each in threads]\n"
    ),
    "a backward pass of another thread's graph": (
        "import threading\nw = torch.randn(64, 64, device='cuda', requires_grad=True)\n"
        "torch.cuda.synchronize()\nwith torch.cuda.stream(side):\n    loss = w.mul(x).sum()\n"
        "def work():\n    loss.backward()\n    w.grad.norm()\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\nw.grad.sum()\n"
    ),
    "a backward pass through two streams": (
        "w = torch.randn(64, 64, device='cuda', requires_grad=True)\nside.wait_stream(main)\n"
        "y = w.mul(2)\nside.wait_stream(main)\nwith torch.cuda.stream(side):\n    z = y.sin()\n"
        "main.wait_stream(side)\nfor _ in range(3):\n"
        "    z.mul(y).sum().backward(retain_graph=True)\n"
        "    with torch.no_grad():\n        w -= w.grad\n    w.grad = None\n"
        "    y = w.mul(2)\n    side.wait_stream(main)\n"
        "    with torch.cuda.stream(side):\n        z = y.sin()\n    main.wait_stream(side)\n"
    ),
    "a stream entered first in a step of a backward pass": (
        HOOKED + "y = w.mul(x)\ny.register_hook(reduces)\ny.sin().sum().backward()\n" + LAST
    ),
    "a stream entered first where a gradient is put": (
        HOOKED + "w.register_post_accumulate_grad_hook(lambda w: reduces(w.grad))\n"
        "w.mul(x).sin().sum().backward()\n" + LAST
    ),
    "a backward pass inside a step of another": (
        HOOKED + "def nests(grad):\n    side.wait_stream(main)\n"
        "    with torch.cuda.stream(side):\n        inner.backward()\n"
        "        reduced.append(x.mul(2))\n    last.wait_stream(side)\n"
        "inner = torch.ones(4, device='cuda', requires_grad=True).mul(2).sum()\n"
        "torch.cuda.synchronize()\n"
        "y = w.mul(x)\ny.register_hook(nests)\ny.sin().sum().backward()\n" + LAST
    ),
    "the end of a backward pass runs where its caller ran": (
        HOOKED + "def ends():\n    reduced.append(x.mul(2))\n    last.wait_stream(side)\n"
        "queue = torch.autograd.Variable._execution_engine.queue_callback\n"
        "y = w.mul(x)\ny.register_hook(lambda grad: queue(ends))\n"
        "side.wait_stream(main)\nwith torch.cuda.stream(side):\n    y.sin().sum().backward()\n"
        + LAST
    ),
}


@pytest.mark.parametrize("program", RACES.values(), ids=RACES)
def test_unordered(program: str, tmp_path: Path) -> None:
    seen = watched(tmp_path, START + program, "XFR603", rehearse="cuda:2")
    assert seen.only.severity is Severity.ERROR
    assert len(seen.only.trail) >= 2


@pytest.mark.parametrize("program", ORDERED.values(), ids=ORDERED)
def test_ordered(program: str, tmp_path: Path) -> None:
    assert watched(tmp_path, START + program, "XFR603", rehearse="cuda:2").found == ()


def test_both_lines_are_told(tmp_path: Path) -> None:
    program = START + RACES["read on the default stream"]
    seen = watched(tmp_path, program, "XFR603", rehearse=SIMULATED)
    assert "is read on the default stream of cuda:0 by sum" in seen.only.message
    assert "where it was written at program.py:7" in seen.only.message
    assert "7: " in seen.steps
    assert "8: " in seen.steps


def test_whose_memory_it_was_is_told(tmp_path: Path) -> None:
    program = START + RACES["memory of the other stream, freed"]
    seen = watched(tmp_path, program, "XFR603", rehearse=SIMULATED)
    assert "freed at program.py:10 before its own stream waited" in seen.only.message
    assert "may be given to the next tensor at program.py:12" in seen.only.message
    assert seen.only.confidence is Confidence.MEDIUM


@pytest.mark.parametrize(("wait", "keep", "mark"), [
    (WAIT, KEEP, ""), (WAIT, "pass", "flagged"), ("pass", KEEP, "flagged"),
])  # fmt: skip
def test_a_prefetcher(wait: str, keep: str, mark: str, tmp_path: Path) -> None:
    program = PREFETCHER.replace("WAIT", wait).replace("KEEP", keep).replace("USED", mark)
    seen = watched(tmp_path, program, "XFR603", rehearse=SIMULATED)
    assert len(seen.found) == bool(mark)


@pytest.mark.parametrize(("before", "after", "mark"), [
    ("side.wait_stream(main)", "main.wait_stream(side)", ""),
    ("", "", "flagged"),
])  # fmt: skip
def test_warming_up_on_another_stream(before: str, after: str, mark: str, tmp_path: Path) -> None:
    program = WARM_UP.replace("BEFORE", before).replace("AFTER", after).replace("TRAINED", mark)
    seen = watched(tmp_path, program, "XFR603", rehearse=SIMULATED)
    assert len(seen.found) == bool(mark)
