"""Memory that was refused: what fills the device, by kind and line, and what grows each step."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.rules.shared.refused_memory import filled_of, growing
from tensortrail.tracer.explaining.memory_table import by_kind, table
from tensortrail.tracer.exports.closing import closing
from tensortrail.tracer.exports.text import render
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tests.rules.recorded import found, record

PROGRAM = """\
import torch
model = torch.nn.Linear(64, 1024, bias=False).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
class Meter:
    def __init__(self):
        self.seen = []
meter = Meter()
for step in range(99):
    logits = model(torch.ones(64, 64, device="cuda"))
    logits.sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    meter.seen.append({"logits": logits})
"""
KIB = 1 << 10


@pytest.mark.complete
def test_every_byte_is_in_one_row_and_what_grows_is_named(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    running = begin(tmp_path / "run", Options(rehearse=parse_spec("cuda:1x3MiB")))
    try:
        with pytest.raises(torch.OutOfMemoryError) as caught:
            exec(compile(PROGRAM, str(program), "exec"), {"__name__": "train"})
        explained = running.explanations.explained(caught.value)
        allocated = torch.cuda.memory_allocated()
    finally:
        running.stop()
    rows = vars(caught.value)["filled"]
    assert sum(each["bytes"] for each in rows) == allocated
    assert f"{allocated / KIB**2:.2f} MiB is allocated by PyTorch" in str(caught.value)
    kinds = {each["kind"]: each for each in rows}
    assert {(kind, kinds[kind]["bytes"], kinds[kind]["line"])
            for kind in ("weights", "gradients", "optimizer state")} == {
        ("weights", 256 * KIB, 2), ("gradients", 256 * KIB, 10), ("optimizer state", 256 * KIB, 11),
    }  # fmt: skip
    (kept,) = [each for each in rows if each["keeper"]]
    assert (kept["keeper"], kept["line"]) == ("the list `Meter.seen`", 9)
    assert kept["each_step"] == 256 * KIB

    assert f"filled   {allocated / KIB**2:.2f} MiB in all: " in explained
    assert "256.00 KiB more each step" in explained
    cause = "the list `Meter.seen` grows by 256.00 KiB each step, by what train.py:9 makes"
    assert "cause    OFF113 memory ran out: 256.00 KiB on cuda:0" in explained
    assert cause in explained
    assert "change   put `.detach().cpu()` of it into the list `Meter.seen`" in explained
    assert "offload" not in explained, "nothing was offloaded"

    timeline = open_run(tmp_path / "run")
    told = " ".join(render(timeline, width=300).split())
    assert f"{allocated / KIB**2:.2f} MiB filled the device at" in told
    assert "kept by the list `Meter.seen`" in told
    last = closing(timeline, found(timeline), "run").replace(f"{tmp_path}/", "")
    assert "error OFF113  train.py:" in last
    assert cause in last
    assert "no findings" not in last


ROWS = [
    {"bytes": 3 * KIB**2, "count": 3, "kind": "kept for backward", "keeper": "", "what": "",
     "file": "/x/a.py", "line": 5, "function": "f", "each_step": KIB**2},
    *({"bytes": 512, "count": 1, "kind": "in variables", "keeper": "", "what": "float32 2",
       "file": "", "line": 0, "function": "", "each_step": 0} for _ in range(12)),
]  # fmt: skip


def test_rows_that_are_not_shown_are_counted() -> None:
    rows = table(ROWS)
    assert (rows[-1].kind, rows[-1].where) == ("in variables", "5 other lines")
    assert sum(each.nbytes for each in rows) == 3 * KIB**2 + 12 * 512
    assert by_kind(ROWS) == "3.00 MiB kept for backward, 6.00 KiB in variables"


def test_a_graph_that_is_kept_from_step_to_step() -> None:
    found = growing(ROWS)
    assert str(found) == "autograd's graph grows by 1.00 MiB each step, by what a.py:5 in f makes"
    assert found is not None
    assert "its whole graph is kept with it" in found.change


def test_a_trail_may_hold_anything() -> None:
    from tensortrail.rules.timeline import Did, Event

    for facts in ({}, {"filled": 3}, {"filled": [3, {"bytes": "many"}, {"bytes": 1}]}):
        assert filled_of(Event(Did.ERROR, 0.0, "main", "", "", facts=facts)) == []


@pytest.mark.complete  # each look goes over all that the tests have imported
def test_what_keeps_the_graph_is_named_by_the_little_that_is_its_own(tmp_path: Path) -> None:
    """The losses of some steps are 512 bytes each; their graphs fill the device."""
    source = """\
    import torch
    class Meter:
        def __init__(self):
            self.values = []
    net = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3))).to("cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    meter = Meter()
    for _ in range(40):
        loss = net(torch.ones(512, 64, device="cuda")).relu().sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        meter.values.append((loss, 1))
    """
    _, timeline, error = record(tmp_path, source, "cuda:1x8MiB")
    assert isinstance(error, torch.OutOfMemoryError)
    (finding,) = found(timeline, "OFF113")
    assert "the list `Meter.values` grows by " in finding.message
    assert ", and autograd's graph by " in finding.message
    (change,) = finding.fixes
    assert "`.detach().cpu()` of it into the list `Meter.values`" in change.description
