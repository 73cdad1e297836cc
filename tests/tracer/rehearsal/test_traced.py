"""Graphs of rehearsed models by other ways than torch.compile: export, transforms, scripts."""

from __future__ import annotations

import io
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("two_gpus"),
    pytest.mark.filterwarnings("ignore"),
]


class Net(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x: Any) -> Any:
        y = F.relu(self.linear(x)) + self.offset + torch.zeros(4, device=x.device)
        return self.norm(y).to("cpu")


@pytest.mark.parametrize("strict", [False, True])
def test_a_model_is_exported_saved_and_run(strict: bool) -> None:
    net, given = Net().cuda().eval(), torch.randn(2, 4, device="cuda")
    rows = ({0: torch.export.Dim("rows")},)
    program = torch.export.export(net, (given,), dynamic_shapes=rows, strict=strict)
    assert {str(each.device) for each in program.state_dict.values()} == {"cuda:0"}
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    more = torch.randn(5, 4, device="cuda")
    for each in (program, program.run_decompositions(), torch.export.load(file)):
        result = each.module()(more)
        assert result.device.type == "cpu"
        torch.testing.assert_close(result, net(more))


def test_an_export_over_two_devices_is_refused() -> None:
    net = Net().cuda()
    net.offset = net.offset.cpu()
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu!"):
        torch.export.export(net, (torch.randn(2, 4, device="cuda"),))


def test_packages_of_kernels_are_refused_in_plain_words() -> None:
    program = torch.export.export(Net().cuda(), (torch.randn(2, 4, device="cuda"),))
    with pytest.raises(NotImplementedError, match="inductor makes no kernels in a rehearsal"):
        torch._inductor.aoti_compile_and_package(program)


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.complete)])
def test_flex_attention(compiled: bool) -> None:
    attend = torch.compile(flex_attention) if compiled else flex_attention
    query = torch.randn(1, 2, 128, 16, device="cuda", requires_grad=True)
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cuda")
    result = attend(query, query, query, block_mask=mask)
    result.sum().backward()
    expected = F.scaled_dot_product_attention(query, query, query, is_causal=True)
    torch.testing.assert_close(result.cpu(), expected.cpu(), atol=1e-5, rtol=1e-4)
    gradient = query.grad.cpu()
    query.grad = None
    expected.sum().backward()
    torch.testing.assert_close(gradient, query.grad.cpu(), atol=1e-5, rtol=1e-4)
    moved = attend(query, query, query, score_mod=lambda s, b, h, i, j: s + (i - j))
    assert moved.device == query.device


def test_transforms() -> None:
    x = torch.randn(3, device="cuda")
    cube = lambda y: (y**3).sum()  # noqa: E731
    torch.testing.assert_close(torch.func.grad(cube)(x), 3 * x**2)
    torch.testing.assert_close(torch.func.hessian(cube)(x), torch.diag(6 * x))
    torch.testing.assert_close(torch.func.jacrev(torch.sin)(x), torch.diag(x.cos()))
    torch.testing.assert_close(torch.func.jacfwd(torch.sin)(x), torch.diag(x.cos()))
    rows = torch.randn(5, 3, device="cuda")
    models = [nn.Linear(3, 2).cuda() for _ in range(4)]
    parameters, buffers = torch.func.stack_module_state(models)

    def run(*state: Any) -> Any:
        return torch.func.functional_call(models[0], state, (rows,))

    stacked = torch.func.vmap(run)(parameters, buffers)
    torch.testing.assert_close(stacked, torch.stack([each(rows) for each in models]))
    with pytest.raises(RuntimeError, match="two devices, cuda:0 and cpu"):
        torch.func.vmap(lambda a, b: a * b)(torch.ones(3, 4, device="cuda"), torch.ones(3, 4))


@pytest.mark.parametrize(
    "function",
    [
        lambda v: torch.zeros(3, device=v.device) + v.to("cpu").to(v.device),
        lambda v: v.cpu() + torch.ones(3),
        lambda v: v.to("cpu", torch.float64).to("cuda", non_blocking=True).float() * v,
    ],
)
def test_functions_that_are_transformed_may_move(function: Any) -> None:
    x = torch.arange(6.0, device="cuda").view(2, 3)
    expected = torch.stack([function(row) for row in x])
    mapped = torch.func.vmap(function)(x)
    assert (mapped.device, mapped.tolist()) == (expected.device, expected.tolist())
    sums = torch.func.vmap(torch.func.grad(lambda v: function(v).sum()))(x)
    leaf = x.clone().requires_grad_()
    torch.stack([function(row) for row in leaf]).sum().backward()
    assert (sums.device.type, sums.tolist()) == ("cuda", leaf.grad.tolist())
    here = torch.func.vmap(lambda v: v + v.get_device() + (v.device == x.device) + v.is_cuda)(x)
    assert here.tolist() == (x + 2).tolist()
    assert torch.func.vmap(lambda v: v.to("meta"))(x).is_meta


def test_tangents_go_along() -> None:
    x, tangent = torch.ones(3, device="cuda"), torch.arange(3.0, device="cuda")
    with torch.autograd.forward_ad.dual_level():
        moved = torch.autograd.forward_ad.make_dual(x, tangent).to("cpu") * 2
        back = torch.autograd.forward_ad.unpack_dual(moved.to("cuda")).tangent
    assert (moved.device.type, back.device.type, back.tolist()) == ("cpu", "cuda", [0, 2, 4])


def test_scripts_and_traces() -> None:
    net, given = nn.Linear(3, 3).cuda(), torch.ones(1, 3, device="cuda")
    for made in (torch.jit.trace(net, given), torch.jit.script(net), torch.fx.symbolic_trace(net)):
        torch.testing.assert_close(made(given), net(given))


@pytest.mark.parametrize("way", [torch.jit.trace, lambda net, given: torch.jit.script(net)])
def test_a_script_is_saved_loaded_and_moved(way: Any) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).cuda().eval()
    given = torch.ones(1, 3, device="cuda")
    made, expected = way(net, given), net(given).tolist()
    for asked, device in ((None, "cuda:0"), ("cpu", "cpu"), ("cuda:1", "cuda:1")):
        file = io.BytesIO()
        torch.jit.save(made, file)
        file.seek(0)
        loaded = torch.jit.load(file, map_location=asked)
        assert {str(each.device) for each in loaded.state_dict().values()} == {device}
        assert loaded(given.to(device)).tolist() == expected
        assert loaded.to("cuda")(given).tolist() == expected
    assert made.to("cpu")(given.cpu()).tolist() == expected


def test_a_trace_holds_numbers() -> None:
    given = torch.ones(2, 3, device="cuda")
    traced = torch.jit.trace(lambda x: x.mean(0) * 2, given)
    assert (str(traced(given).device), traced(given).tolist()) == ("cuda:0", [2, 2, 2])


def test_a_script_that_is_refused_says_why() -> None:
    class Positions(nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x + torch.arange(3, device=x.device)

    traced = torch.jit.trace(Positions(), torch.ones(3))
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu!"):
        traced(torch.ones(3, device="cuda"))


def test_weights_folded_into_a_script_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="folds weights into the code"):
        torch.jit.freeze(torch.jit.script(nn.Linear(3, 3).cuda().eval()))


def test_stand_ins_of_a_script_have_gradients() -> None:
    with FakeTensorMode() as mode:
        net = nn.Linear(3, 3, device="cuda:1")
        output = net(torch.ones(1, 3, device="cuda:1"))
        output.sum().backward()
        assert str(output.device) == str(net.weight.grad.device) == "cuda:1"
        assert (output.is_cuda, output.is_cpu, output.get_device()) == (True, False, 1)
        with pytest.raises(RuntimeError, match="two devices, cuda:1 and cpu!"):
            output + torch.ones(1, 3)
        moved = torch.tensor([1.0, 2.0], device="cuda").to("cuda:1").half().cpu()
        assert (str(moved.device), moved.dtype) == ("cpu", torch.float16)
    assert str(mode.from_tensor(torch.ones(2, device="cuda")).device) == "cuda:0"


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_traced_graphs_name_the_devices(mode: str) -> None:
    def function(x: Any) -> Any:
        return x.sin() + torch.ones(3, device="cuda") + x.cpu().to(x.device)

    traced = make_fx(function, tracing_mode=mode)(torch.zeros(3, device="cuda"))
    named = {str(node.kwargs["device"]) for node in traced.graph.nodes if "device" in node.kwargs}
    assert named == {"cuda:0", "cpu:0"}
    given = torch.ones(3, device="cuda")
    torch.testing.assert_close(traced(given), function(given))
