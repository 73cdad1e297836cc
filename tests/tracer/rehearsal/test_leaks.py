"""After a rehearsal, torch is as it was before."""

from __future__ import annotations

import copy
import sys
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

LOOKED_AT = (
    torch, torch._C, torch.cuda, torch.cuda.memory, torch.cuda.streams, torch.cuda.graphs,
    torch.cuda.nvtx, torch.cuda.random, torch.cuda.amp, torch.accelerator, torch.version,
    torch.backends.cuda, torch.backends.cudnn, torch.serialization, torch.utils.dlpack,
    torch.autograd.profiler, torch.Tensor, torch.nn.Parameter, torch.nn.Module,
    torch.UntypedStorage, torch.autocast, torch.optim.Optimizer, torch.utils._foreach_utils,
)  # fmt: skip
COMES_WITH_USE = {"_inductor", "_dynamo", "_export", "compiler", "onnx", "_higher_order_ops"}
"""Parts of torch that are loaded when first asked for."""

PROGRAM = """
torch.manual_seed(3)
torch.set_default_device("cuda")
net = torch.nn.Linear(3, 3); opt = torch.optim.AdamW(net.parameters())
with torch.autocast("cuda"):
    net(torch.ones(2, 3)).sum().backward()
opt.step(); torch.cuda.synchronize()
torch.cuda.manual_seed(4); torch.Generator("cuda"); torch.cuda.Stream().synchronize()
torch.cuda.memory_summary(); torch.compile(net, backend="eager")(torch.ones(2, 3))
torch.set_default_tensor_type(torch.cuda.HalfTensor)
net.to("cuda:1").cpu().cuda(0); torch.ones(2, device="cpu").pin_memory(); torch.cuda.set_device(1)
"""


def snapshot() -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for owner in LOOKED_AT:
        for name, value in vars(owner).items():
            if isinstance(value, ModuleType) or name in COMES_WITH_USE | {"__slotnames__"}:
                continue
            seen[f"{owner.__name__}.{name}"] = id(value)
    return {
        **seen,
        "functions": torch._C._len_torch_function_stack(),
        "dispatchers": torch._C._len_torch_dispatch_stack(),
        "plain": frozenset(PLAIN),
        "registry": list(torch.serialization._package_registry),
        "foreach": list(torch.utils._foreach_utils._foreach_supported_types),
        "default": (torch.get_default_dtype(), torch.get_default_device()),
        "mkldnn": torch._C._get_mkldnn_enabled(),
        "autocast": [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")],
        "answers": (torch.cuda.is_available(), torch.cuda.device_count(), torch.version.cuda),
        "current": state.current,
    }


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [
        name
        for name in {**before, **after}
        if before.get(name) != after.get(name) and "_global" not in name
    ]


@pytest.fixture(autouse=True)
def _warm() -> None:
    """What torch loads and keeps on first use is there before the comparison."""
    torch.compile(torch.nn.Linear(3, 3), backend="eager")(torch.ones(2, 3))
    torch.optim.SGD([torch.ones(1, requires_grad=True)]).step()
    copy.copy(torch.nn.Parameter(torch.ones(1)))
    with torch.autocast("cpu"):
        pass


@pytest.mark.parametrize("ending", ["", "raise KeyError('no such thing')", "sys.exit(3)"])
def test_torch_is_as_it_was(ending: str) -> None:
    before = snapshot()
    ended: BaseException | None = None
    dtype = torch.get_default_dtype()
    try:
        with Rehearsal(parse_spec("cuda:2x1GiB")):
            try:
                exec(f"{PROGRAM}\ntorch.set_default_dtype(dtype)\n{ending}",
                     {"torch": torch, "sys": sys, "dtype": dtype})  # fmt: skip
            finally:
                torch.set_default_dtype(dtype)
    except BaseException as error:
        ended = error
    assert (ended is None) == (not ending), ended
    left = differences(before, snapshot())
    assert not left, "\n".join(left)


def test_numbers_drawn_afterwards_are_those_of_the_seed() -> None:
    torch.manual_seed(5)
    expected = torch.randn(3)
    with Rehearsal(parse_spec("cuda")):
        torch.randn(7, device="cuda")
    torch.manual_seed(5)
    assert torch.equal(torch.randn(3), expected)


def test_what_is_left_of_it_says_so() -> None:
    with Rehearsal(parse_spec("cuda")):
        left = torch.ones(2, device="cuda")
    with pytest.raises(RuntimeError, match="the rehearsal is over"):
        left + 1
    with pytest.raises((AssertionError, RuntimeError), match=r"(?i)cuda|nvidia"):
        torch.ones(2).cuda()


def test_a_rehearsal_that_cannot_begin_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise OSError("no such luck")

    before = snapshot()
    with monkeypatch.context() as patched:
        patched.setattr("tensortrail.tracer.rehearsal.tensor.storages.install", fails)
        with pytest.raises(OSError, match="no such luck"):
            Rehearsal(parse_spec("cuda")).__enter__()
    left = differences(before, snapshot())
    assert not left, "\n".join(left)


def test_one_rehearsal_at_a_time() -> None:
    with Rehearsal(parse_spec("cuda:2")):
        with pytest.raises(RuntimeError, match="on already"):
            Rehearsal(parse_spec("cuda")).__enter__()
        assert torch.cuda.device_count() == 2
    assert torch.cuda.device_count() == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch has a GPU here")
@pytest.mark.parametrize(
    "asks",
    [
        lambda: torch.ones(1, device="cuda"),
        lambda: torch.ones(1).cuda(),
        lambda: torch.ones(1).to("cuda:1"),
        lambda: torch.cuda.current_device(),
    ],
)
def test_torch_says_again_that_it_has_no_gpu(asks: Any) -> None:
    def said() -> tuple[type[BaseException], str]:
        with pytest.raises(Exception) as caught:
            asks()
        return caught.type, str(caught.value)

    before = said()
    with Rehearsal(parse_spec("cuda:2")):
        asks()
    assert said() == before


def test_the_version_of_a_torch_that_was_built_for_gpus_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Libraries such as torchvision refuse to be imported beside another one."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with Rehearsal(parse_spec("cuda")):
        assert torch.version.cuda == "13.0"
