"""Autograd, checkpointing, precision, data loading and profiling under a recording."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint  # noqa: E402

from tests.tracer.transparent.twice import recorded, same_twice  # noqa: E402


def net() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )


def trained(around: Callable[[Any, Any], Any], steps: int = 3) -> Any:
    model = net().to(torch.float64).to(torch.float32)
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = around(model, torch.randn(3, 4, requires_grad=True)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, model.state_dict(), optimizer.state_dict()["state"]


def plain() -> Any:
    return trained(lambda model, x: model(x))


def checkpointed() -> Any:
    return trained(lambda model, x: checkpoint(model, x, use_reentrant=False))


def checkpointed_reentrant() -> Any:
    return trained(lambda model, x: checkpoint(model, x, use_reentrant=True))


def autocast() -> Any:
    def around(model: Any, x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).to(torch.float32)

    return trained(around)


def scaled() -> Any:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(model(torch.randn(3, 4)).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return model.state_dict(), scaler.state_dict()


def inference() -> Any:
    with torch.inference_mode():
        made = net()(torch.ones(1, 4)).to(torch.float64)
        return made, made.clone(), torch.empty(2).copy_(torch.ones(2))


def no_grad() -> Any:
    with torch.no_grad():
        x = torch.ones(2, requires_grad=True)
        x.copy_(torch.zeros(2))
        made = x.to(torch.float64)
    return made.requires_grad, made, x.to(torch.float64).requires_grad


def double_backward() -> Any:
    x = torch.randn(3, requires_grad=True)
    (first,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    first.sum().backward()
    return first, second, x.grad


def kinds_of_backward() -> Any:
    x = torch.randn(3, requires_grad=True)
    y, z = x * 2, x.sin()
    y.backward(torch.ones(3), True)
    y.backward(gradient=torch.ones(3), inputs=[x])
    torch.autograd.backward([z.sum(), y.sum()])
    return x.grad, torch.autograd.functional.jacobian(torch.sin, x)


def anomaly() -> Any:
    with torch.autograd.set_detect_anomaly(True):
        x = torch.tensor([-1.0], requires_grad=True)
        x.sqrt().clone().sum().backward()


def hooks() -> Any:
    told: list[Any] = []
    model = net()
    model.register_forward_hook(lambda module, args, made: told.append(made.shape))
    model.register_full_backward_hook(lambda module, given, made: told.append(len(made)))
    model.register_state_dict_pre_hook(lambda module, prefix, keep: told.append(prefix))
    model.register_load_state_dict_post_hook(lambda module, keys: told.append(len(keys)))
    model[0].weight.register_post_accumulate_grad_hook(lambda p: told.append(p.grad.norm()))
    x = torch.randn(2, 4, requires_grad=True)
    y = model(x)
    y.register_hook(lambda gradient: gradient.to(torch.float64).to(torch.float32) * 3)
    y.grad_fn.register_hook(lambda given, made: told.append([g is None for g in given]))
    y.sum().backward()
    model.load_state_dict(model.state_dict())
    return told, x.grad


def saved_tensor_hooks() -> Any:
    def pack(x: Any) -> Any:
        return x.to(torch.float64).cpu()

    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x.to(torch.float32)):
        y = x.exp().sin()
    with torch.autograd.graph.save_on_cpu():
        y = y * x
    y.sum().backward()
    return x.grad


def custom_function() -> Any:
    seen = []

    class Moving(torch.autograd.Function):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x.clone())
            return x.to(torch.float64)

        @staticmethod
        def backward(context: Any, gradient: Any) -> Any:
            (x,) = context.saved_tensors
            seen.append(torch.is_grad_enabled())
            return gradient.to(x.dtype) * torch.ones_like(x) * x

    x = torch.randn(3, requires_grad=True)
    Moving.apply(x).sum().backward()
    return x.grad, seen


def loader() -> Any:
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.arange(6).to(torch.float32), torch.arange(6))
    return list(DataLoader(data, batch_size=4, shuffle=True, num_workers=0))


def accumulators() -> Any:
    batches = torch.nn.BatchNorm1d(3)
    recurrent = torch.nn.LSTM(3, 2, batch_first=True)
    for _ in range(2):
        out, state = recurrent(batches(torch.randn(4, 3)).unsqueeze(0))
    return out, state, batches.state_dict()


PROGRAMS = [
    plain, checkpointed, checkpointed_reentrant, autocast, scaled, inference, no_grad,
    double_backward, kinds_of_backward, anomaly, hooks, saved_tensor_hooks, custom_function,
    loader, accumulators,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_training(program: Callable[[], Any], tmp_path: Path) -> None:
    same_twice(program, tmp_path)


def test_files_have_the_same_content(tmp_path: Path) -> None:
    def program() -> Any:
        file = tmp_path / "weights.pt"
        torch.save(net().state_dict(), file)
        loaded = torch.load(file, mmap=True)
        sizes = file.stat().st_size
        torch.save(net(), file)
        whole = torch.load(file, weights_only=False)
        return loaded, sizes, whole.state_dict()

    same_twice(program, tmp_path / "run")


def test_a_profiler_sees_the_same_operations(tmp_path: Path) -> None:
    def program() -> list[str]:
        from torch.profiler import ProfilerActivity, profile

        meta = torch.ones(2, device="meta")
        with profile(activities=[ProfilerActivity.CPU]) as seen:
            model = net()
            model(torch.randn(3, 4).to(torch.float64).to(torch.float32)).sum().backward()
            torch.empty(3).copy_(torch.ones(3))
            torch.cat([meta, meta.clone()])
        return [event.name for event in seen.events()]

    program()
    assert len(same_twice(program, tmp_path)) > 20


def test_random_numbers_are_not_used_up(tmp_path: Path) -> None:
    import random

    torch.manual_seed(3)
    random.seed(3)
    with recorded(tmp_path):
        net().to(torch.float64)
        states = torch.get_rng_state(), random.getstate()
    torch.manual_seed(3)
    random.seed(3)
    net().to(torch.float64)
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()


def test_settings_of_torch_stay(tmp_path: Path) -> None:
    def settings() -> bytes:
        return pickle.dumps(
            (
                torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads(),
                torch.is_autocast_enabled("cpu"), torch.are_deterministic_algorithms_enabled(),
                torch.is_anomaly_enabled(), torch.is_inference_mode_enabled(),
                torch.__future__.get_swap_module_params_on_conversion(),
            )
        )  # fmt: skip

    before = settings()
    with recorded(tmp_path):
        net().to(torch.float64)(torch.ones(1, 4, dtype=torch.float64)).sum().backward()
        assert settings() == before
    assert settings() == before
