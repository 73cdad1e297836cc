"""On a GPU that is there: a recording keeps no memory of it, and changes no graph and no stream."""

from __future__ import annotations

import copy
import gc
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._dynamo.utils import counters  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tests.tracer.transparent.twice import outcome, recorded, same  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.filterwarnings("ignore"),
]
Program = Callable[[], Any]
PROGRAMS: dict[str, Program] = {}


def program(made: Program) -> Program:
    PROGRAMS[made.__name__] = made
    return made


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    """What only a collector would free is kept too long."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def net() -> Any:
    inner = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    return torch.nn.Sequential(torch.nn.Linear(16, 64), inner, torch.nn.Linear(64, 1))


def batch() -> Any:
    return torch.arange(8 * 16.0).reshape(1, 8, 16).sin()


@program
def training() -> Any:
    model = net().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(batch().cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [each.cpu() for each in model.parameters()]


@program
def there_and_back() -> Any:
    model = net()
    for _ in range(3):
        model.cuda()
        model.half().float().cpu()
    return [each.device.type for each in model.parameters()]


@program
def a_failure() -> Any:
    model = net().cuda()
    return model(batch())


@program
def a_failure_of_the_graph() -> Any:
    x = batch().cuda().requires_grad_()
    y = x.exp()
    y.add_(1)
    return y.sum().backward()


@program
def failures_that_are_caught() -> Any:
    said = []
    model, kept = net().cuda(), []
    for _ in range(5):
        kept.append(torch.ones(1000, device="cuda"))
        try:
            model(torch.ones(1, 8, 16))
        except RuntimeError as error:
            said.append(str(error))
    return said


@program
def saved_and_loaded() -> Any:
    model, file = net().cuda(), io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again = net().cuda()
    again.load_state_dict(torch.load(file, map_location="cuda"), assign=True)
    return [each.cpu() for each in again.parameters()]


@program
def views_and_freed_storages() -> Any:
    x = torch.arange(1000.0, device="cuda")
    rows, size = x.view(10, 100), x.untyped_storage().nbytes()
    answer = rows[1:3].sum().item()
    x.untyped_storage().resize_(0)
    x.untyped_storage().resize_(size)
    x.data = torch.zeros(8, device="cuda")
    return answer, x.cpu()


@program
def checkpointed_and_saved_on_the_cpu() -> Any:
    model, x = net().cuda(), batch().cuda().requires_grad_()
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        checkpoint(model, x, use_reentrant=False).sum().backward()
    return x.grad.cpu()


@program
def scaled() -> Any:
    model = net().cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cuda")
    for _ in range(2):
        with torch.autocast("cuda", torch.float16):
            loss = model(batch().cuda()).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=False)
    return scaler.get_scale(), [each.cpu() for each in copy.deepcopy(model).parameters()]


@program
def pinned_copies_in_a_stream() -> Any:
    side, before = torch.cuda.Stream(), torch.cuda.current_stream()
    host = torch.arange(1 << 20).float().pin_memory()
    back = torch.empty(1 << 20, pin_memory=True)
    with torch.cuda.stream(side):
        there = host.to("cuda", non_blocking=True) * 2
        back.copy_(there, non_blocking=True)
        there.record_stream(side)
        done = side.record_event()
    done.synchronize()
    pinned = host.is_pinned(), back.is_pinned(), host.cuda().cpu().is_pinned()
    return back.sum(), pinned, torch.cuda.current_stream() == before


@program
def a_captured_graph() -> Any:
    model, x = net().cuda().eval(), batch().cuda()
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.stream(side):
        model(x)
    side.synchronize()
    with torch.no_grad(), torch.cuda.graph(graph):
        answer = model(x)
    x.add_(1)
    graph.replay()
    return answer.cpu()


@program
def a_graphed_model() -> Any:
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU()).cuda()
    graphed = torch.cuda.make_graphed_callables(model, (batch()[0].cuda().requires_grad_(),))
    graphed(batch()[0].cuda()).sum().backward()
    return model[0].weight.grad.cpu()


@program
def batches_of_pinned_memory() -> Any:
    data = torch.utils.data.TensorDataset(torch.arange(32.0))
    loader = torch.utils.data.DataLoader(data, 8, pin_memory=True)
    return [(each.is_pinned(), each.cuda(non_blocking=True).sum().cpu()) for (each,) in loader]


@pytest.mark.parametrize("made", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_values_and_memory(made: Program, tmp_path: Path) -> None:
    used(made)  # libraries take their own memory once
    plain = used(made)
    with recorded(tmp_path / "first"):
        within = used(made)
        again = used(made)
    assert same(within, plain)
    assert same(again, plain)
    assert same(used(made), plain)


def used(made: Program) -> Any:
    """What it gives, and the bytes it left, its peak and its allocations."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    left, allocated = torch.cuda.memory_allocated(), allocations()
    answer = outcome(made)
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - left
    return answer, torch.cuda.memory_allocated() - left, peak, allocations() - allocated


def allocations() -> int:
    return int(torch.cuda.memory_stats()["allocation.all.allocated"])


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
@pytest.mark.parametrize("when", ["before", "within"])
def test_compiled_code(mode: str, when: str, tmp_path: Path) -> None:
    def trained(begins: bool) -> Any:
        torch._dynamo.reset()
        counters.clear()
        torch.manual_seed(0)
        model = net().cuda()
        compiled, x = torch.compile(model, mode=mode), batch().cuda()
        if when == "before":
            steps(compiled, x)
        if begins:
            with recorded(tmp_path):
                steps(compiled, x)
        else:
            steps(compiled, x)
        steps(compiled, x)
        seen = {name: dict(counters[name]) for name in ("graph_break", "stats", "inductor")}
        for name in [each for each in seen["inductor"] if each.startswith("async_compile_cache")]:
            del seen["inductor"][name]  # of workers that take longer or shorter
        return seen, [each.detach().cpu() for each in model.parameters()]

    def steps(compiled: Any, x: Any) -> None:
        for _ in range(3):
            torch.compiler.cudagraph_mark_step_begin()
            compiled(x).square().mean().backward()
            with torch.no_grad():
                for each in compiled.parameters():
                    each -= 0.01 * each.grad
                    each.grad = None

    trained(False)  # what is compiled once for all is out of the way
    alone, within = trained(False), trained(True)
    assert same(within[0], alone[0])
    assert same(within[1], alone[1])
