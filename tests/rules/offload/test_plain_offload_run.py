"""Offloading by hand, with nothing but torch, on a simulated GPU: each mistake with its rule, and
the same program without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.rules.recorded import found, record, watched  # noqa: E402

GPU = "cuda:1x1GiB"
LAYERS = """\
import torch
layers = torch.nn.ModuleList(torch.nn.Linear(600, 600) for _ in range(3))
x = torch.randn(2, 600).cuda()
"""
LOOP = """\
for layer in layers:
    layer.to("cuda")
    x = layer(x)
    layer.to("cpu")
"""


@pytest.fixture(autouse=True)
def _programs_may_switch_gradients_off() -> Iterator[None]:
    with torch.enable_grad():
        yield


def codes(folder: Path, source: str) -> list[str]:
    _, timeline, error = record(folder, source, GPU)
    assert error is None
    return [each.code for each in found(timeline)]


def test_a_loop_that_brings_each_layer_and_takes_it_back(tmp_path: Path) -> None:
    assert codes(tmp_path, f"{LAYERS}torch.set_grad_enabled(False)\n{LOOP}") == []


def test_the_same_loop_for_training_offloads_nothing(tmp_path: Path) -> None:
    """Autograd keeps the weights on the device for the backward pass."""
    loop = LOOP.replace('layer.to("cpu")', 'layer.to("cpu")  # flagged')
    seen = watched(tmp_path, f"{LAYERS}{loop}", "OFF108", GPU)
    assert "held by a local variable or autograd's graph" in seen.only.message


def test_a_layer_that_was_forgotten(tmp_path: Path) -> None:
    source = LAYERS + LOOP.replace('    layer.to("cuda")\n', "").replace(
        "x = layer(x)", "x = layer(x)  # flagged"
    )
    seen = watched(tmp_path, source, "DEV502", GPU)
    assert "`layers.0.weight` and `layers.0.bias` are on cpu" in seen.only.message


@pytest.mark.complete
def test_old_weights_that_are_held_on_the_device(tmp_path: Path) -> None:
    source = (
        LAYERS
        + "averages = []\n"
        + LOOP.replace(
            'layer.to("cpu")', 'averages.append(layer.weight.data)\n    layer.to("cpu")  # flagged'
        )
    )
    seen = watched(tmp_path, source, "OFF108", GPU)
    assert "`Linear` went from cuda:0 to cpu, but 1.4 MB of the 1.4 MB" in seen.only.message
    assert seen.only.message.endswith("held by the list `averages`")
    assert seen.only.evidence["moves"] == "3"


def test_averages_that_are_kept_on_the_host(tmp_path: Path) -> None:
    kept = 'averages.append(layer.weight.data.cpu())\n    layer.to("cpu")'
    source = f"{LAYERS}averages = []\ntorch.set_grad_enabled(False)\n"
    assert codes(tmp_path, source + LOOP.replace('layer.to("cpu")', kept)) == []


PINNED = """\
buffer = torch.empty(2, 600, pin_memory=True)
with torch.no_grad():
    out = torch.nn.Sequential(*layers.cuda())(x)
"""
OFFLOADS = {
    "to": 'host = out.to("cpu", non_blocking=True)',
    "copy": "host = buffer.copy_(out, non_blocking=True)",
}
READS = {
    "item": "host.sum().item()",
    "tolist": "host[0].tolist()",
    "numpy": "host.numpy().sum()",
    "quantized": "torch.quantize_per_tensor(host, 0.1, 0, torch.qint8)",
}
WAITS = {
    "stream": "torch.cuda.current_stream().synchronize()",
    "device": "torch.cuda.synchronize()",
    "event": "done = torch.cuda.Event()\ndone.record()\ndone.synchronize()",
    "a copy that blocks": "out.cpu()",
}
MOVED = f"{LAYERS}{PINNED}"


@pytest.mark.parametrize("offload", OFFLOADS.values(), ids=OFFLOADS.keys())
@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_an_activation_that_is_read_before_it_arrived(
    tmp_path: Path, offload: str, read: str
) -> None:
    watched(tmp_path, f"{MOVED}{offload}\n{read}  # flagged\n", "XFR601", GPU)


@pytest.mark.parametrize("offload", OFFLOADS.values(), ids=OFFLOADS.keys())
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
def test_an_activation_that_is_waited_for(tmp_path: Path, offload: str, wait: str) -> None:
    assert codes(tmp_path, f"{MOVED}{offload}\n{wait}\nhost.sum().item()\n") == []


@pytest.mark.parametrize("offload", OFFLOADS.values(), ids=OFFLOADS.keys())
def test_an_activation_that_only_goes_back(tmp_path: Path, offload: str) -> None:
    back = 'again = host.to("cuda", non_blocking=True)\nassert torch.equal(again, out)\n'
    assert codes(tmp_path, f"{MOVED}{offload}\n{back}") == []


TRAINED = """\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(3))).cuda()
x = torch.randn(2, 8, device="cuda")
{around}
    loss = model(x).square().mean()
loss.backward()
"""


@pytest.mark.parametrize("pinned", [True, False])
def test_saved_tensors_on_the_cpu(tmp_path: Path, pinned: bool) -> None:
    around = f"with torch.autograd.graph.save_on_cpu(pin_memory={pinned}):"
    check = """\
offloaded = [each.grad.clone() for each in model.parameters()]
model.zero_grad()
model(x).square().mean().backward()
assert all(map(torch.allclose, offloaded, (each.grad for each in model.parameters())))
"""
    assert codes(tmp_path, TRAINED.format(around=around) + check) == []


HOOKS = """\
def pack(tensor):
    host = tensor.to("cpu", non_blocking=True)
    {wait}
    return host.half(){mark}
def unpack(host):
    return host.float().to("cuda", non_blocking=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):"""


def test_a_saved_tensor_that_is_compressed_before_it_arrived(tmp_path: Path) -> None:
    around = HOOKS.format(wait="pass", mark="  # flagged")
    watched(tmp_path, TRAINED.format(around=around), "XFR601", GPU)


def test_a_saved_tensor_that_is_compressed_once_it_has_arrived(tmp_path: Path) -> None:
    around = HOOKS.format(wait="torch.cuda.current_stream().synchronize()", mark="")
    assert codes(tmp_path, TRAINED.format(around=around)) == []
