"""Copies read too early, in programs on simulated GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Severity
from tests.rules.judged import severity
from tests.rules.mending import mended
from tests.rules.recorded import watched

START = "import torch\ngpu = torch.arange(6., device='cuda').view(2, 3)\n"

RACES = {
    "to": "host = gpu.to('cpu', non_blocking=True)\nhost.sum()  # flagged\nhost.sum()\n",
    "copy_ into pinned memory": (
        "host = torch.empty(2, 3).pin_memory()\nhost.copy_(gpu, non_blocking=True)\n"
        "print(host.tolist())  # flagged\n"
    ),
    "numpy": "host = gpu.to('cpu', non_blocking=True)\narray = host.numpy()  # flagged\n",
    "item": "host = gpu.sum().to('cpu', non_blocking=True)\nhost.item()  # flagged\n",
    "a view of it": (
        "host = gpu.to('cpu', non_blocking=True)\nrow = host[0].view(-1)\nrow + 1  # flagged\n"
    ),
    "another device was waited for": (
        "host = gpu.to('cpu', non_blocking=True)\ntorch.cuda.synchronize(1)\n"
        "host.sum()  # flagged\n"
    ),
    "another stream was waited for": (
        "with torch.cuda.stream(torch.cuda.Stream()):\n"
        "    host = gpu.to('cpu', non_blocking=True)\n"
        "torch.cuda.current_stream().synchronize()\nhost.sum()  # flagged\n"
    ),
    "an event from before": (
        "early = torch.cuda.current_stream().record_event()\n"
        "host = gpu.to('cpu', non_blocking=True)\nearly.synchronize()\nhost.sum()  # flagged\n"
    ),
}
WAITED = {
    "blocking": "host = gpu.to('cpu')\nhost.sum()\n",
    "device": "host = gpu.to('cpu', non_blocking=True)\ntorch.cuda.synchronize()\nhost.sum()\n",
    "stream": (
        "host = gpu.to('cpu', non_blocking=True)\ntorch.cuda.current_stream().synchronize()\n"
        "host.sum()\n"
    ),
    "event": (
        "host = gpu.to('cpu', non_blocking=True)\ndone = torch.cuda.Event()\ndone.record()\n"
        "done.synchronize()\nhost.sum()\n"
    ),
    "a later blocking copy": (
        "host = gpu.to('cpu', non_blocking=True)\nother = gpu.sum().cpu()\nhost.sum()\n"
    ),
    "a value of the device": (
        "host = gpu.to('cpu', non_blocking=True)\nloss = gpu.sum().item()\nhost.sum()\n"
    ),
    "a stream that waited for the other": (
        "side = torch.cuda.Stream()\nwith torch.cuda.stream(side):\n"
        "    host = gpu.to('cpu', non_blocking=True)\n"
        "torch.cuda.current_stream().wait_stream(side)\n"
        "torch.cuda.current_stream().synchronize()\nhost.sum()\n"
    ),
    "a choice by values": ("host = gpu.to('cpu', non_blocking=True)\ngpu[gpu > 2]\nhost.sum()\n"),
    "a copy to the device that blocks": (
        "host = gpu.to('cpu', non_blocking=True)\nthere = torch.ones(2).cuda()\nhost.sum()\n"
    ),
    "pageable memory": (
        "host = torch.empty(2, 3)\nhost.copy_(gpu, non_blocking=True)\nhost.sum()\n"
    ),
    "to the device": (
        "host = torch.ones(2, 3).pin_memory()\nthere = host.cuda(non_blocking=True)\n"
        "(there + gpu).sum()\nhost.sum()\n"
    ),
    "back to the device": (
        "host = gpu.to('cpu', non_blocking=True)\nback = host.to('cuda', non_blocking=True)\n"
        "back.sum()\n"
    ),
    "only its shape": (
        "host = gpu.to('cpu', non_blocking=True)\nlike = torch.empty_like(host)\n"
        "print(host.shape, host.view(-1).stride())\n"
    ),
}


@pytest.mark.parametrize("program", RACES.values(), ids=RACES)
def test_read_too_early(program: str, tmp_path: Path) -> None:
    seen = watched(tmp_path, START + program, "XFR601", rehearse="cuda:2")
    assert seen.only.severity is Severity.ERROR
    assert "before its copy from cuda:0, made by" in seen.only.message
    assert "before the copy from cuda:0 was waited for" in seen.steps


@pytest.mark.parametrize("name", ["to", "copy_ into pinned memory", "numpy"])
def test_the_copy_can_be_waited_for(name: str, tmp_path: Path) -> None:
    seen = watched(tmp_path, START + RACES[name], "XFR601", rehearse="cuda:2")
    after = mended(seen)
    assert after == START + RACES[name].replace("non_blocking=True", "non_blocking=False")
    (tmp_path / "again").mkdir()
    unmarked = after.replace("  # flagged", "")
    assert not watched(tmp_path / "again", unmarked, "XFR601", rehearse="cuda:2").found


def test_a_copy_that_is_not_in_sight_has_no_setting(tmp_path: Path) -> None:
    source = START + "how = {'non_blocking': True}\nhost = gpu.to('cpu', **how)\n"
    seen = watched(tmp_path, f"{source}host.sum()  # flagged\n", "XFR601", rehearse="cuda:2")
    assert not seen.only.settings


@pytest.mark.parametrize("program", WAITED.values(), ids=WAITED)
def test_waited_for(program: str, tmp_path: Path) -> None:
    assert watched(tmp_path, START + program, "XFR601", rehearse="cuda:2").found == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    return x.to('cpu', non_blocking=True).tolist()\n", Severity.ERROR),
        ("    return x.to('cpu', non_blocking=True).numpy()\n", Severity.ERROR),
        (
            "    rows = x.to('cpu', non_blocking=True).numpy()\n"
            "    torch.cuda.synchronize()\n    return rows\n",
            None,
        ),
        ("    return x.to('cpu', non_blocking=True).shape\n", None),
        ("    return x.to('cpu').numpy()\n", None),
        ("    KEPT.rows = x.to('cpu', non_blocking=True).numpy()\n", None),
        (
            "    KEPT.rows = x.to('cpu', non_blocking=True).numpy()\n    print(KEPT.rows)\n",
            Severity.ERROR,
        ),
        ("    KEPT.rows = x.to('cpu', non_blocking=True).tolist()\n", Severity.ERROR),
    ],
)
def test_a_read_of_the_copy_at_once(body: str, expected: Severity | None) -> None:
    assert severity("XFR601", f"import torch\n\n\ndef sent(x):\n{body}") is expected
