"""Programs with compiled functions. Each is given a device and what compiles, and gives values
back that are the same on all devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

Program = Callable[[str, Callable[..., Any]], Any]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


@program
def training(device: str, compiled: Any) -> Any:
    layers = nn.Linear(8, 16), nn.SiLU(), nn.Dropout(0.2), nn.BatchNorm1d(16), nn.Linear(16, 4)
    net = nn.Sequential(*layers).to(device)
    step, optimizer, losses = compiled(net), torch.optim.AdamW(net.parameters()), []
    for rows in (5, 5, 7, 9):
        loss = step(torch.randn(rows, 8).to(device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@program
def views_and_writes(device: str, compiled: Any) -> Any:
    def change(x: Tensor) -> Any:
        flat = x.view(-1)
        x.add_(1)
        part = flat[2:5]
        part.mul_(2)
        return x.t(), part, flat

    given = torch.randn(6, 6, device=device)
    return [each.cpu() for each in (*compiled(change)(given), *compiled(change)(given[1:]), given)]


@program
def made_inside(device: str, compiled: Any) -> Any:
    def make(x: Tensor) -> Tensor:
        made = torch.ones(x.shape[1], device=x.device).cumsum(0)
        counted = torch.arange(3, device=device).to(x.dtype)
        values = torch.tensor([1.0, 2.0, 3.0], device=device) + torch.tensor(2.0, device=device)
        return x + made + counted + values + torch.zeros_like(x) + torch.full((3,), 1.5).to(x)

    return compiled(make)(torch.randn(2, 3, device=device)).cpu()


@program
def moved_inside(device: str, compiled: Any) -> Any:
    def move(x: Tensor) -> Any:
        there = x.to(device).sin()
        here = there.cpu() * 2
        return (here.to(there) + there).to(torch.float64).cpu(), there.to(device) is there

    return compiled(move)(torch.randn(3, 3))


@program
def gradients_through_moves(device: str, compiled: Any) -> Any:
    given = torch.randn(3, requires_grad=True)
    compiled(lambda x: (x.to(device).sin().cpu() * x).sum())(given).backward()
    return given.grad


@program
def broken_graphs(device: str, compiled: Any) -> Any:
    def broken(x: Tensor) -> Tensor:
        y = x.sin()
        value = y.sum().item()
        torch._dynamo.graph_break()
        scale = torch.tensor([1.0, 2.0], device=device)
        if y.mean() > 0:
            scale = scale * 2
        return y[:, :2] * value + scale

    run = compiled(broken)
    return [run(torch.full((2, 3), number, device=device)).cpu() for number in (1.0, -1.0)]


@program
def left_alone(device: str, compiled: Any) -> Any:
    @torch._dynamo.disable  # type: ignore[untyped-decorator]
    def eager(x: Tensor) -> Tensor:
        return x + torch.tensor(1.0, device=device)

    return compiled(lambda x: eager(x.sin()).cos())(torch.ones(3, device=device)).cpu()


@program
def recurrent(device: str, compiled: Any) -> Any:
    output, (hidden, _) = compiled(nn.LSTM(4, 5, batch_first=True).to(device))(
        torch.randn(2, 3, 4, device=device)
    )
    return output.detach().cpu(), hidden.detach().cpu()


@program
def attention(device: str, compiled: Any) -> Any:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0).to(device)
    output = compiled(layer)(torch.randn(2, 5, 8, device=device))
    output.sum().backward()
    return output.detach().cpu(), layer.linear1.weight.grad.cpu()


@program
def compiled_again(device: str, compiled: Any) -> Any:
    run, given = compiled(lambda x, n: x * n + x.shape[0]), []
    for rows, number, dtype in ((2, 1, "float32"), (3, 1, "float32"), (4, 2, "float64")):
        given.append((torch.ones(rows, 2, device=device, dtype=getattr(torch, dtype)), number))
    return [run(*each).cpu() for each in given]


@program
def dynamic_shapes(device: str, compiled: Any) -> Any:
    run = compiled(lambda x: x.sum(0) * x.shape[0], dynamic=True)
    return [run(torch.ones(rows, 2, device=device)).cpu() for rows in (2, 3, 4)]


@program
def one_graph(device: str, compiled: Any) -> Any:
    run = compiled(lambda x: torch.where(x > 0, x, -x).sort().values, fullgraph=True)
    return run(torch.randn(7, device=device)).cpu()


class Words(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(10, 4), nn.Linear(4, 10)
        self.register_buffer("position", torch.arange(6))

    def forward(self, ids: Tensor) -> Tensor:
        hidden = self.embed(ids) + self.position[: ids.shape[1], None]
        return F.cross_entropy(self.head(hidden).flatten(0, 1), ids.flatten())


@program
def embedding(device: str, compiled: Any) -> Any:
    model = Words().to(device)
    loss = compiled(model)(torch.randint(0, 10, (2, 5), device=device))
    loss.backward()
    return loss.item(), model.embed.weight.grad.cpu()


@program
def a_module_that_compiles_itself(device: str, compiled: Any) -> Any:
    model = Words().to(device)
    model.compile(backend=compiled.keywords["backend"])
    return model(torch.ones(2, 5, dtype=torch.long, device=device)).item()


@program
def questions(device: str, compiled: Any) -> Any:
    def ask(x: Tensor) -> Any:
        same = torch.device(device).type == x.device.type and x.is_cuda == (device == "cuda")
        return x.to(x.device) + 1, same, type(x) is torch.Tensor, isinstance(x, torch.Tensor)

    result, *answers = compiled(ask)(torch.ones(2, device=device))
    return result.cpu(), answers


@program
def backward_inside(device: str, compiled: Any) -> Any:
    layer = nn.Linear(3, 1).to(device)

    def step(x: Tensor) -> Tensor:
        loss = layer(x).sum()
        loss.backward()
        return loss.detach()

    given = torch.ones(2, 3, device=device)
    return compiled(step)(given).cpu(), layer.weight.grad.cpu()


@program
def transforms(device: str, compiled: Any) -> Any:
    weight = torch.randn(3, device=device)

    def each(x: Tensor) -> Any:
        return torch.func.vmap(torch.func.grad(lambda row: (row * weight).sin().sum()))(x)

    return compiled(each)(torch.randn(4, 3, device=device)).cpu()


@program
def checkpointed(device: str, compiled: Any) -> Any:
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Tanh()).to(device)
    run = compiled(lambda x: checkpoint(net, x, use_reentrant=False))
    run(torch.ones(2, 4, device=device, requires_grad=True)).sum().backward()
    return net[0].weight.grad.cpu()


@program
def outputs_without_a_gradient(device: str, compiled: Any) -> Any:
    given = torch.ones(3, device=device, requires_grad=True)
    compiled(lambda x: (x * 2, x.sin()))(given * 1)[0].sum().backward()
    return given.grad.cpu()


@program
def branches(device: str, compiled: Any) -> Any:
    def choose(x: Tensor) -> Any:
        made = torch.ones(3, device=device)
        return torch.cond(x.sum() > 0, lambda y: y.sin() + 1, lambda y: y.cos(), (x + made,))

    return compiled(choose)(torch.ones(3, device=device)).cpu()


@program
def optimizer(device: str, compiled: Any) -> Any:
    parameters = [nn.Parameter(torch.ones(3, 3, device=device)) for _ in range(2)]
    adam = torch.optim.AdamW(parameters, lr=0.1, foreach=True)
    step = compiled(lambda: adam.step())
    for _ in range(3):
        for each in parameters:
            each.grad = torch.ones_like(each)
        step()
    return [each.detach().cpu() for each in parameters]


@program
def indexing(device: str, compiled: Any) -> Any:
    def index(x: Tensor, rows: Tensor, columns: Tensor) -> Any:
        y = x.clone()
        y[rows] = 0
        y[:, columns] += 1
        return y, x[rows], torch.gather(x, 0, torch.zeros(1, 3, dtype=torch.long, device=device))

    rows, columns = torch.tensor([0, 2]), torch.tensor([True, False, True], device=device)
    given = torch.randn(3, 3, device=device)
    return [each.cpu() for each in compiled(index)(given, rows, columns)]


class Square(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 2 * ctx.saved_tensors[0] * gradient


@program
def own_gradient(device: str, compiled: Any) -> Any:
    given = torch.ones(3, device=device, requires_grad=True)
    compiled(lambda x: Square.apply(x).sum())(given).backward()
    return given.grad.cpu()


@program
def random_numbers(device: str, compiled: Any) -> Any:
    def draw(x: Tensor) -> Tensor:
        return F.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(3, device=device)

    return compiled(draw)(torch.ones(2, 3, device=device)).cpu()


@program
def images(device: str, compiled: Any) -> Any:
    layers = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
    net = nn.Sequential(*layers).to(device)
    output = compiled(net)(torch.randn(2, 3, 8, 8, device=device))
    output.sum().backward()
    return output.detach().cpu(), net[0].weight.grad.cpu()
