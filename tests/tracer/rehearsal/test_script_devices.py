"""Code of `torch.jit.script` sees simulated devices, and moves tensors between them."""

from __future__ import annotations

import io
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("two_gpus"),
    pytest.mark.filterwarnings("ignore:`torch.jit"),
]


def is_on_cpu(x: Tensor) -> bool:
    return bool(x.device.type == "cpu")


def where(x: Tensor, step: int = 2) -> tuple[Tensor, str, bool, bool, int]:
    made = torch.zeros(1, device=x.device)
    if is_on_cpu(x):
        made += step
    else:
        made -= step
    return made, str(x.device), x.is_cuda, x.is_cpu, x.get_device()


@pytest.mark.parametrize("place", ["cpu", "cuda:0", "cuda:1"])
def test_a_script_hears_what_python_hears(place: str) -> None:
    x = torch.ones(2, device=place)
    scripted = torch.jit.script(where)
    for found, expected in zip(scripted(x), where(x), strict=True):
        assert found == expected
    assert scripted(x, step=3)[0].tolist() == where(x, 3)[0].tolist()


def moves(x: Tensor, y: Tensor) -> list[Tensor]:
    return [
        x.to(y.device), x.to(y), x.to(y.device, torch.float64), x.to(dtype=torch.float16),
        x.to(y.device, non_blocking=True), x.cpu(), x.cuda(), x.to("cuda:1"), x.type_as(y),
    ]  # fmt: skip


@pytest.mark.parametrize("there", ["cpu", "cuda:0", "cuda:1"])
@pytest.mark.parametrize("here", ["cpu", "cuda:1"])
def test_a_script_moves_as_python_does(here: str, there: str) -> None:
    x, y = torch.arange(3.0, device=here), torch.ones(1, device=there)
    for found, expected in zip(torch.jit.script(moves)(x, y), moves(x, y), strict=True):
        assert (found.device, found.dtype) == (expected.device, expected.dtype)
        assert found.tolist() == expected.tolist()


class Adds(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor, twice: bool = False) -> Tensor:
        return self.added(x) * 2 if twice else self.added(x)

    @torch.jit.export  # type: ignore[untyped-decorator]
    def added(self, x: Tensor) -> Tensor:
        return x.to(self.weight.device) + self.weight


def test_methods_of_a_module_do_too_and_pass_gradients_on() -> None:
    module = torch.jit.script(Adds()).cuda()
    x = torch.ones(2, requires_grad=True)
    assert module.added(x).device.type == "cuda"
    module(x, twice=True).sum().backward()
    assert x.grad.device.type == "cpu"
    assert x.grad.tolist() == module.weight.grad.tolist() == [2, 2]


def test_a_saved_script_is_as_it_was() -> None:
    module = torch.jit.script(Adds())
    code = module.code
    module(torch.ones(2))
    assert module.code == code
    file = io.BytesIO()
    torch.jit.save(module, file)
    assert b"tensortrail" not in file.getvalue()


def test_a_scripted_function_that_is_refused_says_why() -> None:
    def added(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    scripted = torch.jit.script(added)
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu"):
        scripted(torch.ones(2, device="cuda"), torch.ones(2))
    with pytest.raises(RuntimeError, match="missing value for argument 'y'"):
        scripted(torch.ones(2))


def scaled(x: Tensor) -> tuple[Tensor, Tensor]:
    there, here = torch.tensor([1.0, 2.0], device=x.device), torch.tensor([1.0, 2.0])
    number = 2.0 * torch.tensor(3.0, dtype=torch.float64)
    same_number = torch.tensor(2.0, dtype=torch.float64, device=x.device)
    return (x + there) * number * same_number, here * 3


@pytest.mark.parametrize("place", ["cpu", "cuda:0"])
def test_a_trace_whose_constants_are_compared_gives_what_python_gives(place: str) -> None:
    x = torch.ones(2, device=place)
    traced = torch.jit.trace(scaled, (x,))
    for _ in range(3):  # the optimizer works at the first runs
        for found, expected in zip(traced(x), scaled(x), strict=True):
            assert found.device == expected.device
            assert found.tolist() == expected.tolist()


def test_a_move_in_a_trace_reads_no_values() -> None:
    with warnings.catch_warnings(record=True) as told:
        torch.jit.trace(lambda x: x.to("cuda") + x.cuda(), (torch.ones(2),))
    assert not [each for each in told if "Python boolean" in str(each.message)]


def test_equal_in_a_script_is_refused_over_two_devices() -> None:
    def alike(x: Tensor, y: Tensor) -> bool:
        return bool(torch.equal(x, y))

    with pytest.raises(RuntimeError, match="wrapper_CUDA__equal"):
        torch.jit.script(alike)(torch.ones(2, device="cuda"), torch.ones(2))
