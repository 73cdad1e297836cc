"""torch.compile: its options, and what is built on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.testing import CompileCounter  # noqa: E402

from tests.tracer.transparent.twice import recorded, same  # noqa: E402


@pytest.fixture(autouse=True)
def _fresh() -> None:
    torch._dynamo.reset()


def test_a_full_graph_stays_full(tmp_path: Path) -> None:
    def program(x: Any) -> Any:
        return (x.to(torch.float64) + torch.empty(3).fill_(1)).clone().sum()

    x = torch.randn(3)
    with recorded(tmp_path):
        result = torch.compile(program, backend="eager", fullgraph=True)(x)
    assert same(result, program(x))


def test_a_break_is_still_an_error_in_a_full_graph(tmp_path: Path) -> None:
    def program(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x

    compiled = torch.compile(program, backend="eager", fullgraph=True)
    with recorded(tmp_path), pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(torch.ones(2))


def test_explain_tells_the_same(tmp_path: Path) -> None:
    def program(x: Any) -> Any:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    def explained() -> tuple[int, int, int]:
        torch._dynamo.reset()
        told = torch._dynamo.explain(program)(torch.ones(2))
        return told.graph_count, told.graph_break_count, told.op_count

    alone = explained()
    with recorded(tmp_path):
        assert explained() == alone


def test_dynamic_shapes(tmp_path: Path) -> None:
    def sizes(counter: Any) -> list[int]:
        torch._dynamo.reset()
        program = torch.compile(lambda x: x.sin() * x.shape[0], backend=counter)
        return [(program(torch.ones(n)), counter.frame_count)[1] for n in (3, 4, 5, 9)]

    alone = sizes(CompileCounter())
    with recorded(tmp_path):
        assert sizes(CompileCounter()) == alone


def test_an_optimizer_step(tmp_path: Path) -> None:
    def trained() -> Any:
        torch._dynamo.reset()
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 3)
        optimizer = torch.optim.Adam(net.parameters())
        counter = CompileCounter()
        step = torch.compile(optimizer.step, backend=counter)
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).sum().backward()
            step()
        return net.state_dict(), counter.frame_count

    alone = trained()
    with recorded(tmp_path):
        assert same(trained(), alone)


def test_a_whole_training_step(tmp_path: Path) -> None:
    def trained() -> Any:
        torch._dynamo.reset()
        torch.manual_seed(0)
        net = torch.nn.Linear(3, 3)
        compiled = torch.compile(net, backend="aot_eager")
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            loss = compiled(torch.ones(2, 3)).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        return losses

    alone = trained()
    with recorded(tmp_path):
        assert same(trained(), alone)


@pytest.mark.parametrize("early", [True, False])
def test_a_mode_of_the_user_around_a_compiled_function(early: bool, tmp_path: Path) -> None:
    class Naming(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    counter = CompileCounter()
    program = torch.compile(lambda x: x.sin() + 1, backend=counter)
    x = torch.ones(3)
    if early:
        with Naming():
            program(x)
    with recorded(tmp_path), Naming():
        program(x)
    with Naming():
        program(x)
    assert counter.frame_count == 1


def test_the_default_device_is_still_guarded(tmp_path: Path) -> None:
    counter = CompileCounter()
    program = torch.compile(lambda: torch.ones(3), backend=counter)
    with recorded(tmp_path):
        assert program().device.type == "cpu"
        with torch.device("meta"):
            assert program().device.type == "meta"
        assert program().device.type == "cpu"
    assert counter.frame_count == 2


def test_the_compiler_remembers_nothing_of_ours(tmp_path: Path) -> None:
    """It knows functions by identity and would never find the real ones again."""
    from torch._dynamo.trace_rules import get_tensor_method, get_torch_obj_rule_map

    remembered = (get_torch_obj_rule_map, get_tensor_method)
    for each in remembered:
        each.cache_clear()
    with recorded(tmp_path):
        torch.compile(lambda x: torch.relu(x), backend="eager")(torch.ones(2))
    within = [set(each()) for each in remembered]
    for each in remembered:
        each.cache_clear()
    assert within == [set(each()) for each in remembered]


def test_the_mode_is_back_after_an_error_in_compiled_code(tmp_path: Path) -> None:
    def program(x: Any) -> Any:
        torch._dynamo.graph_break()
        raise KeyError("mine")

    from tensortrail.tracer.patching.mode_stack import ours
    from tensortrail.tracer.watching.mode import TrailMode

    with recorded(tmp_path):
        with pytest.raises(KeyError, match="mine"):
            torch.compile(program, backend="eager")(torch.ones(2))
        assert ours(TrailMode) is not None
    assert ours(TrailMode) is None


def test_stopping_inside_of_a_compiled_region(tmp_path: Path) -> None:
    from tensortrail.tracer.recording import session
    from tensortrail.tracer.recording.begin import begin

    @torch._dynamo.disable  # type: ignore[untyped-decorator]
    def stops() -> None:
        session.running().stop()  # type: ignore[union-attr]

    def program(x: Any) -> Any:
        y = x.sin()
        stops()
        return y.cos()

    begin(tmp_path)
    x = torch.ones(3)
    assert same(torch.compile(program, backend="eager")(x), x.sin().cos())
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_graphs_of_a_gpu(tmp_path: Path) -> None:
    net = torch.nn.Linear(8, 8).cuda()
    compiled = torch.compile(net, mode="reduce-overhead")
    x = torch.ones(4, 8, device="cuda")
    with torch.no_grad():
        alone = [compiled(x).clone() for _ in range(3)]
        with recorded(tmp_path):
            traced = [compiled(x).clone() for _ in range(3)]
    assert same(alone, traced)
