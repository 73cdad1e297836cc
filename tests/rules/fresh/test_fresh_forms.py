"""Memory without values, in each form in which a weight can get it, on each device and in each kind
of tensor. `pytest -s` prints the table: what is found, or why there is nothing to find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from tests.rules.recorded import WRAPPER, found, record

FORMS = {
    "to_empty": "m.to_empty(device=DEVICE)",
    "empty_like": "m.w = P(torch.empty_like(m.w))",
    "empty_strided": "m.w = P(torch.empty_strided((4, 4), (4, 1), device=DEVICE))",
    "new_empty": "m.w = P(m.w.new_empty(4, 4))",
    ".data =": "m.w.data = torch.empty_like(m.w)",
    "set_": "m.w.set_(torch.empty_like(m.w))",
    "set_ to a storage": "m.w.set_(torch.empty_like(m.w).untyped_storage(), 0, (4, 4), (4, 1))",
    "swap_tensors": "torch.utils.swap_tensors(m.w, P(torch.empty_like(m.w)))",
    "resize_": "s = part(m.w).untyped_storage(); n = s.nbytes(); s.resize_(0); s.resize_(n)",
    "a copy of it": "m.w.data = torch.empty_like(m.w).clone()",
    "in another type": "m.w = P(torch.empty(4, 4, device=DEVICE).half())",
    "copied into": "m.w.data.copy_(torch.empty(4, 4, device=DEVICE))",
    "moved": "m.w = P(torch.empty(4, 4).to(DEVICE))",
    "two rows written": "m.w.data = torch.empty_like(m.w); m.w.data[:2].copy_(torch.ones(2, 4))",
    "one row set": "m.w.data = torch.empty_like(m.w); m.w.data[1] = 1",
}
PARTS = ("two rows written", "one row set")
PROGRAM = """\
import torch
from torch.nn import Parameter as P
DEVICE, kept, failed = {device!r}, [], {{}}
def part(w):
    return w.data
class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = P({weight}, requires_grad=False)
"""
FORM = """\
m = M()
kept.append(m)
try:
    {form}
except Exception as error:
    failed[{name!r}] = str(error)
else:
    y = m.w + 1
"""
WRAPPED = "\n".join((WRAPPER, "wrapped = lambda: Packed(torch.ones(4, 4, device=DEVICE))"))
SPREAD = """\
import torch.distributed as dist
from torch.distributed.tensor import distribute_tensor
mesh = dist.device_mesh.init_device_mesh("cpu" if DEVICE == "meta" else DEVICE, (1,))
spread = lambda: distribute_tensor(torch.ones(4, 4, device=mesh.device_type), mesh)
def part(w):
    return w.data._local_tensor
"""
KINDS = {
    "plain": ("torch.ones(4, 4, device=DEVICE)", ""),
    "wrapper": ("wrapped()", WRAPPED + "\npart = lambda w: w.data.inner\n"),
    "DTensor": ("spread()", SPREAD),
}
LEFT_OUT = {("wrapper", "set_ to a storage"): "torch would read at address 0"}
NOTHING_TO_FIND = {
    **{("meta", kind, form): "there is no memory" for kind in KINDS for form in FORMS},
    **{
        (device, kind, form): "torch leaves the memory of the parts as it was"
        for device in ("cpu", "cuda")
        for kind in ("wrapper", "DTensor")
        for form in (".data =", "a copy of it", *PARTS)
    },
    **{
        (device, "wrapper", "to_empty"): "torch leaves the memory of the parts as it was"
        for device in ("cpu", "cuda")
    },
}


def cells(folder: Path, device: str, kind: str) -> Iterator[tuple[str, str]]:
    """What each form leads to."""
    weight, more = KINDS[kind]
    source = PROGRAM.format(device=device, weight=weight) + more
    lines = {}
    for name, form in FORMS.items():
        if (kind, name) in LEFT_OUT:
            continue
        source += FORM.format(name=name, form=form)
        lines[source.count("\n")] = name
    source += "open(folder + '/failed', 'w').write(repr(failed))\n"
    _, timeline, error = record(folder, source, "cuda" if device == "cuda" else "")
    assert error is None, error
    told = {lines.get(each.site.line, ""): each for each in found(timeline, "NEW306")}
    failed = eval((folder / "failed").read_text())
    for name in FORMS:
        if name in told:
            yield name, f"{told[name].severity.value}: {told[name].message}"
        elif name in failed:
            yield name, f"torch refuses it: {failed[name].splitlines()[0][:60]}"
        elif (kind, name) in LEFT_OUT:
            yield name, LEFT_OUT[kind, name]
        else:
            yield name, NOTHING_TO_FIND.get((device, kind, name), "missed")


def judged(folder: Path, device: str, kind: str) -> None:
    for name, cell in cells(folder, device, kind):
        print(f"{device:5} {kind:8} {name:18} {cell}")
        assert cell != "missed"
        if (device, kind, name) in NOTHING_TO_FIND or cell.startswith("torch "):
            continue
        said = "warning: " if name in PARTS else "error: "
        assert cell.startswith(said), cell
        assert "`M.w`" in cell


@pytest.mark.parametrize("device", ["cpu", "cuda", "meta"])
@pytest.mark.parametrize("kind", ["plain", "wrapper"])
def test_each_form(tmp_path: Path, device: str, kind: str) -> None:
    judged(tmp_path, device, kind)


@pytest.mark.parametrize("device", ["cpu", "cuda", "meta"])
def test_each_form_in_a_distributed_tensor(tmp_path: Path, device: str) -> None:
    distributed = torch.distributed
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    try:
        judged(tmp_path, device, "DTensor")
    finally:
        distributed.destroy_process_group()
