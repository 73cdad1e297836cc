"""Function transforms, exporters and tracers of torch: they see the program, not us."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import func  # noqa: E402

from tests.tracer.transparent.twice import Failure, recorded, same, same_twice  # noqa: E402

pytestmark = pytest.mark.long


class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x: Any) -> Any:
        y = self.linear(x).to(torch.float64) + torch.zeros(3).clone()
        return y.to("cpu", torch.float32).contiguous() + self.offset


def loss(x: Any) -> Any:
    return (x.clone().to(torch.float64) * torch.ones(3)).sin().sum()


def vmap() -> Any:
    def each(x: Any) -> Any:
        y = x.to(torch.float64).clone() + torch.zeros_like(x)
        return y.new_ones(2).sum() + y.detach().contiguous().sum()

    return func.vmap(each)(torch.randn(4, 3)), func.vmap(torch.matmul, (0, None))(
        torch.randn(4, 3), torch.randn(3)
    )


def vmap_that_fails() -> Any:
    return func.vmap(lambda x: x.tolist())(torch.ones(2, 2))


def grad() -> Any:
    x = torch.randn(3)
    return func.grad(loss)(x), func.grad_and_value(loss)(x), func.hessian(loss)(x)


def jvp() -> Any:
    x = torch.randn(3)
    return func.jvp(loss, (x,), (torch.ones(3),)), func.jacrev(torch.sin)(x)


def functional_call() -> Any:
    net = Net()
    weights = {name: tensor.detach().clone() for name, tensor in net.named_parameters()}

    def error(weights: Any, x: Any) -> Any:
        return func.functional_call(net, weights, (x,)).square().sum()

    return func.vmap(func.grad(error), (None, 0))(weights, torch.randn(4, 3))


def functionalize() -> Any:
    def program(x: Any) -> Any:
        y = torch.empty(3)
        y.copy_(x)
        return y.add_(1)

    return func.functionalize(program)(torch.randn(3))


def cond() -> Any:
    x = torch.randn(3)
    return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


def while_loop() -> Any:
    from torch._higher_order_ops.while_loop import while_loop as loop

    start = (torch.tensor(0), torch.ones(2))
    return loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), start)


def scan() -> Any:
    from torch._higher_order_ops.scan import scan as scanned

    def step(carry: Any, x: Any) -> Any:
        return carry + x, (carry * x).clone()

    return scanned(step, torch.zeros(2), torch.randn(3, 2))


def flex_attention() -> Any:
    from torch.nn.attention.flex_attention import create_block_mask
    from torch.nn.attention.flex_attention import flex_attention as flex

    def causal(b: Any, h: Any, q: Any, k: Any) -> Any:
        return q >= k

    query = torch.randn(1, 1, 16, 8)
    mask = create_block_mask(causal, 1, 1, 16, 16, device="cpu", BLOCK_SIZE=16)
    return flex(query, query, query, block_mask=mask)


PROGRAMS = [
    vmap, vmap_that_fails, grad, jvp, functional_call, functionalize, cond, while_loop, scan,
    flex_attention,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_transform(program: Callable[[], Any], tmp_path: Path) -> None:
    failed = isinstance(same_twice(program, tmp_path), Failure)
    assert failed == (program is vmap_that_fails)


@pytest.mark.parametrize("strict", [True, False])
def test_export(strict: bool, tmp_path: Path) -> None:
    def program() -> Any:
        exported = torch.export.export(Net(), (torch.ones(2, 3),), strict=strict)
        graph = [(node.op, str(node.target), node.name) for node in exported.graph.nodes]
        made = exported.module()(torch.full((2, 3), 2.0))
        return graph, str(exported.graph_signature), str(exported.module().code), made

    assert len(same_twice(program, tmp_path)[0]) > 4


def test_where_a_graph_came_from(tmp_path: Path) -> None:
    def sources(strict: bool) -> list[str]:
        exported = torch.export.export(Net(), (torch.ones(2, 3),), strict=strict)
        return [str(node.meta.get("stack_trace")) for node in exported.graph.nodes]

    for strict in (True, False):
        alone = sources(strict)
        with recorded(tmp_path):
            assert sources(strict) == alone


def test_make_fx(tmp_path: Path) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    def program() -> Any:
        net = Net()
        made = [
            str(make_fx(net, tracing_mode=mode)(torch.ones(2, 3)).code)
            for mode in ("real", "fake", "symbolic")
        ]
        made += [str(make_fx(func.grad(loss), pre_dispatch=True)(torch.ones(3)).code)]
        return made

    same_twice(program, tmp_path)


def test_symbolic_trace(tmp_path: Path) -> None:
    def program() -> Any:
        class Plain(torch.nn.Module):  # type: ignore[misc,name-defined]
            def forward(self, x: Any) -> Any:
                y = torch.nn.functional.relu(x.to(torch.float64)).clone()
                return torch.cat([y, torch.zeros(2, dtype=torch.float64)]).cpu() + x.size(0)

        traced = torch.fx.symbolic_trace(Plain())
        return str(traced.graph), traced.code, traced(torch.ones(2))

    same_twice(program, tmp_path)


def scripted(x: torch.Tensor, n: int) -> torch.Tensor:  # type: ignore[name-defined]
    y = x.to(torch.float64).clone()
    for _ in range(n):
        y = y + torch.zeros_like(y)
    return y.cpu()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_jit(tmp_path: Path) -> None:
    def program() -> Any:
        script = torch.jit.script(scripted)
        net = Net()
        traced = torch.jit.trace(net, (torch.ones(2, 3),))
        return script.code, script(torch.ones(2), 3), traced.code, traced(torch.ones(2, 3))

    same_twice(program, tmp_path)


def test_fake_tensors(tmp_path: Path) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    def program() -> Any:
        with FakeTensorMode() as mode:
            net = Net()
            out = net(torch.empty(2, 3))
            moved = out.to(torch.float64).clone().contiguous()
            moved.copy_(torch.ones(2, 3))
            stats = type(moved).__name__, moved.device, moved.dtype, tuple(moved.stride())
            try:
                moved.tolist()
            except Exception as error:
                stats = (*stats, type(error).__name__)  # type: ignore[assignment]
            converted = mode.from_tensor(torch.ones(2))
            return stats, str(converted), [type(p).__name__ for p in net.parameters()]

    same_twice(program, tmp_path)


def test_symbolic_shapes_are_not_made_concrete(tmp_path: Path) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    def program() -> Any:
        shapes = ShapeEnv()
        mode = FakeTensorMode(shape_env=shapes)
        x = mode.from_tensor(torch.ones(5, 3), static_shapes=False)
        with mode:
            y = x.to(torch.float64).clone()
            z = torch.empty(y.shape[0]).copy_(y[:, 0])
        return [str(guard.expr) for guard in shapes.guards], str(z.shape)

    same_twice(program, tmp_path)


def test_results_are_compared_bit_for_bit() -> None:
    assert not same(torch.tensor(0.0), torch.tensor(-0.0))
    assert same(torch.tensor(float("nan")), torch.tensor(float("nan")))
