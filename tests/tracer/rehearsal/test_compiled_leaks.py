"""After a rehearsal the compiler is as it was, and keeps no code for simulated tensors."""

from __future__ import annotations

import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo import device_interface, eval_frame, pgo, trace_rules, utils  # noqa: E402
from torch._dynamo.backends import registry  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch._dynamo.variables import builder, ctx_manager, optimizer  # noqa: E402
from torch._dynamo.variables import torch as torch_variables  # noqa: E402
from torch._functorch._aot_autograd import runtime_wrappers  # noqa: E402
from torch._subclasses import fake_tensor  # noqa: E402
from torch.fx.experimental import proxy_tensor  # noqa: E402

from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal  # noqa: E402

OWNERS = (
    torch._dynamo.convert_frame, torch._dynamo.output_graph.OutputGraph, eval_frame, trace_rules,
    utils, builder, builder.VariableBuilder, optimizer.OptimizerVariable, registry, pgo,
    ctx_manager.CUDADeviceVariable, runtime_wrappers, fake_tensor.FakeTensor, device_interface,
    fake_tensor.FakeTensorMode, proxy_tensor.PythonKeyTracer, torch._TorchCompileInductorWrapper,
    torch._dynamo.callback.CompilationCallbackHandler, torch._inductor,
)  # fmt: skip
COUNTED = {"cache", "cache_hits", "cache_misses", "cache_bypasses", "counters", "curr_frame"}


def registries() -> list[set[Any]]:
    return [
        set(trace_rules.get_torch_obj_rule_map()),
        set(torch_variables.TorchInGraphFunctionVariable._get_handlers()),
        set(torch_variables.constant_fold_functions),
        set(torch_variables.constant_fold_functions_need_guards),
        set(utils.common_constant_types),
        set(builder.SourcelessBuilder._type_handlers),
        set(registry._COMPILER_FNS.items()),
        set(device_interface.device_interfaces),
        {name for name in sys.modules if "cudagraph_trees" in name},
    ]


def attributes() -> dict[str, int]:
    return {
        f"{owner.__name__}.{name}": id(value)
        for owner in OWNERS
        for name, value in vars(owner).items()
        if callable(value) or isinstance(value, (property, staticmethod, classmethod))
    }


def use(backend: str = "aot_eager") -> None:
    def run(x: Any) -> Any:
        with torch.cuda.device(0):
            y = x.to("cuda") + torch.cuda.get_device_properties(0).major
        torch._dynamo.graph_break()
        return y.sum().item()

    torch.compile(run, backend=backend)(torch.ones(3, device="cuda", requires_grad=True))
    torch.compile(torch.nn.LSTM(2, 2).cuda(), backend=backend)(torch.ones(1, 2, device="cuda"))


@pytest.fixture(autouse=True)
def _warm() -> None:
    """What torch loads and keeps on first use is there before the comparison."""
    torch._dynamo.reset()
    registry._lazy_import()
    torch.compile(lambda x: x + 1, backend="aot_eager")(torch.ones(3, requires_grad=True))
    torch._dynamo.graph_break()


@pytest.mark.filterwarnings("ignore")
def test_the_compiler_is_as_it_was() -> None:
    known, before = registries(), attributes()
    with Rehearsal(parse_spec("cuda:2x1GiB")):
        use()
        use("inductor")
    assert registries() == known
    after = attributes()
    assert {name for name in before if before[name] != after[name]} == set()


def test_code_compiled_before_stays_and_no_other() -> None:
    counter = CompileCounterWithBackend("aot_eager")

    def function(x: Any) -> Any:
        return x + 1

    def other(x: Any) -> Any:
        return x + 2

    run, again = (torch.compile(each, backend=counter) for each in (function, other))
    run(torch.ones(3))
    with Rehearsal(parse_spec("cuda")):
        run(torch.ones(3, device="cuda"))
        run(torch.ones(3))
        again(torch.ones(3, device="cuda"))
        assert counter.frame_count == 3
    assert len(eval_frame._debug_get_cache_entry_list(other.__code__)) == 0
    run(torch.ones(3))
    assert counter.frame_count == 3
    again(torch.ones(3))
    assert counter.frame_count == 4
    with Rehearsal(parse_spec("cuda")):
        assert run(torch.ones(3, device="cuda")).device.type == "cuda"
    assert counter.frame_count == 5


def test_stand_ins_are_torchs_own_again() -> None:
    with Rehearsal(parse_spec("cuda")), fake_tensor.FakeTensorMode():
        assert str(torch.empty(2, device="cuda").device) == "cuda:0"
    with fake_tensor.FakeTensorMode():
        fake = torch.empty(2, device="cpu")
        assert (str(fake.device), str(fake.fake_device)) == ("cpu", "cpu")
