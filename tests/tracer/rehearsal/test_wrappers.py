"""Tensors around tensors lie where what is inside them lies, and can be trained there."""

from __future__ import annotations

import copy
import io
import pickle
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._pytree import tree_map_only  # noqa: E402

from tensortrail.tracer.rehearsal.lacks import NotRehearsed  # noqa: E402


class Around(torch.Tensor):  # type: ignore[name-defined,misc]
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Any, requires_grad: bool = False) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=requires_grad
        )

    def __init__(self, inner: Any, requires_grad: bool = False) -> None:
        self.inner_values = inner

    def __repr__(self) -> str:
        return f"Around({self.inner_values})"

    def __tensor_flatten__(self) -> Any:
        return ["inner_values"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Around(inner["inner_values"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = tree_map_only(Around, lambda each: each.inner_values, (args, kwargs or {}))
        result = func(*given[0], **given[1])
        return tree_map_only(torch.Tensor, Around, result)


pytestmark = pytest.mark.usefixtures("two_devices")


def test_it_says_the_device_of_what_is_inside() -> None:
    around = Around(torch.ones(2, device="cuda:1"))
    assert around.device == torch.device("cuda:1")
    assert around.is_cuda
    assert not around.is_cpu
    assert around.get_device() == 1
    doubled: Any = around * 2
    assert doubled.device == torch.device("cuda:1")
    assert Around(torch.ones(2)).device == torch.device("cpu")


def test_it_moves_with_what_is_inside() -> None:
    around = Around(torch.arange(2.0))
    there = around.cuda()
    assert there.inner_values.device == torch.device("cuda:0")
    assert there.to("cuda:0") is there
    assert there.to("cuda:1").inner_values.device == torch.device("cuda:1")
    for back in (there.cpu(), there.to("cpu"), there.to(device="cpu")):
        assert type(back) is Around
        assert back.device.type == "cpu"
        assert back.inner_values.tolist() == [0, 1]


def test_modules_move_it() -> None:
    module = torch.nn.Linear(2, 2, bias=False)
    module.weight = torch.nn.Parameter(Around(torch.ones(2, 2)))
    assert module.cuda().weight.device == torch.device("cuda:0")
    assert module.cpu().weight.inner_values.device.type == "cpu"


def test_gradients_come_back_through_it() -> None:
    around = Around(torch.tensor([1.0, 2.0], device="cuda"), requires_grad=True)
    (around * around).sum().backward()
    assert type(around.grad) is Around
    assert around.grad.device == torch.device("cuda:0")
    assert around.grad.inner_values.tolist() == [2, 4]


def test_a_file_brings_it_back_to_its_device() -> None:
    file = io.BytesIO()
    torch.save({"weight": Around(torch.ones(2, device="cuda:1"))}, file)
    for asked, expected in ((None, "cuda:1"), ("cpu", "cpu")):
        file.seek(0)
        loaded = torch.load(file, weights_only=False, map_location=asked)["weight"]
        assert type(loaded) is Around
        assert loaded.device == loaded.inner_values.device == torch.device(expected)


def test_mixed_devices_inside_raise() -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        Around(torch.ones(2, device="cuda")) + Around(torch.ones(2))


class Tells(Around):
    """A wrapper that says where it lies when it is taken apart, as NF4 weights do."""

    def __tensor_flatten__(self) -> Any:
        names, context = super().__tensor_flatten__()
        return names, (context, self.device)


def test_a_wrapper_that_tells_its_device_when_it_is_taken_apart_has_one() -> None:
    wrapped = Tells(torch.ones(2, device="cuda:1"))
    assert str(wrapped.device) == "cuda:1"
    assert wrapped.__tensor_flatten__()[1][1] == torch.device("cuda:1")


class Marked(torch.nn.Parameter):  # type: ignore[name-defined,misc]
    """A subclass that leaves its operations to torch, as bitsandbytes' weights do."""

    def __new__(cls, data: Any, requires_grad: bool = False) -> Any:
        return torch.Tensor._make_subclass(cls, data, requires_grad)


def test_a_plain_subclass_on_the_cpu_computes_as_it_is() -> None:
    marked = Marked(torch.arange(4.0).reshape(2, 2))
    assert type(marked.data) is torch.Tensor
    assert type(marked.detach()) is torch.Tensor
    assert torch.equal(marked.data.contiguous().to("cuda").cpu(), marked.data)
    with pytest.raises(RuntimeError, match="same device"):
        marked @ torch.ones(2, 2, device="cuda")


class Noted(torch.Tensor):  # type: ignore[name-defined,misc]
    """A subclass whose results are of it, too."""


class Labelled(torch.nn.Parameter):  # type: ignore[name-defined,misc]
    """A subclass that carries an attribute over to each result, as weights of GGUF files do."""

    def __new__(cls, data: Any, label: str) -> Any:
        made = torch.Tensor._make_subclass(cls, data, False)
        made.label = label
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = super().__torch_function__(func, types, args, kwargs or {})
        label = next((each.label for each in args if isinstance(each, Labelled)), "")
        return cls(found, label) if isinstance(found, torch.Tensor) else found


def test_a_plain_subclass_keeps_its_class_and_attributes_on_a_device() -> None:
    layer = torch.nn.Linear(2, 2)
    layer.weight = Marked(layer.weight.data)
    layer.weight.scale = 3
    layer.to("cuda")
    assert isinstance(layer.weight, Marked)
    assert layer.weight.__class__ is Marked
    assert str(layer.weight.device) == "cuda:0"
    assert vars(layer.weight) == {"scale": 3}
    assert type(layer(torch.ones(1, 2, device="cuda"))).__name__ == "SimTensor"
    layer.cpu()
    assert type(layer.weight) is Marked
    assert layer.weight.scale == 3


def test_a_moved_plain_subclass_is_what_it_is_on_a_gpu() -> None:
    marked = Marked(torch.ones(2))
    assert marked.to("cuda").__class__ is torch.Tensor
    there = Marked(marked.to("cuda"))
    assert copy.deepcopy(there).__class__ is Marked
    assert type(there)(torch.ones(2)).__class__ is Marked
    leaf = torch.ones(3, requires_grad=True)
    noted = leaf.as_subclass(Noted)
    moved = noted.to("cuda:1") * 2
    assert [each.__class__ for each in (moved, moved.data, moved[0], moved.cpu())] == [Noted] * 4
    moved.sum().backward()
    assert leaf.grad is not None
    labelled = Labelled(torch.ones(2), "q4")
    results = [each(labelled) for each in (torch.Tensor.cuda, lambda x: x.to("cuda").half() + 1)]
    assert [each.label for each in (*results, results[0].cpu())] == ["q4"] * 3


def test_a_pickled_plain_subclass_has_what_torch_keeps_of_it(tmp_path: Path) -> None:
    marked, noted = Marked(torch.ones(2, device="cuda")), torch.ones(2).as_subclass(Noted).cuda()
    marked.scale = torch.full((1,), 3.0, device="cuda")
    noted.note = "kept"
    torch.save([marked, noted], tmp_path / "file")
    for pair in (
        pickle.loads(pickle.dumps([marked, noted])),
        torch.load(tmp_path / "file", weights_only=False),
    ):
        assert [each.__class__ for each in pair] == [torch.nn.Parameter, Noted]
        assert (pair[0].scale.item(), pair[1].note) == (3, "kept")
        assert [str(each.device) for each in (*pair, pair[0].scale)] == ["cuda:0"] * 3


def test_a_plain_subclass_on_a_device_is_compiled() -> None:
    there = Marked(torch.ones(2, 2, device="cuda"))
    double = torch.compile(lambda x, y: x @ y + 1, backend="aot_eager", fullgraph=True)
    assert double(there, torch.ones(2, 2, device="cuda")).tolist() == [[3, 3], [3, 3]]


def test_a_simulated_tensor_becomes_no_wrapper() -> None:
    with pytest.raises(NotRehearsed, match="cannot become a Around"):
        torch.ones(2, device="cuda").as_subclass(Around)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_jagged_tensors_are_trained_and_moved() -> None:
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    nested = torch.nested.nested_tensor(
        parts, layout=torch.jagged, device="cuda:1", requires_grad=True
    )
    layer = torch.nn.Linear(3, 2).to("cuda:1")
    (layer(nested) * 2).values().sum().backward()
    assert nested.grad.device == nested.device == torch.device("cuda:1")
    assert layer.bias.grad.tolist() == [12, 12]
    assert nested.cpu().device == torch.device("cpu")
    assert nested.cpu().cuda().device == torch.device("cuda:0")


class Made(torch.Tensor):  # type: ignore[name-defined,misc]
    """A subclass whose constructor is that of tensors."""


class MadeOf(torch.Tensor):  # type: ignore[name-defined,misc]
    """A subclass that asks for a tensor itself, as memory-mapped tensors do."""

    def __new__(cls, source: Any) -> Any:
        return super().__new__(cls, source)


@pytest.mark.parametrize("place", ["cpu", "cuda:1"])
@pytest.mark.parametrize("kind", [Made, MadeOf])
def test_a_subclass_is_made_by_the_constructor_of_tensors(kind: type, place: str) -> None:
    source = torch.ones(2, 3, device=place, requires_grad=True)
    made = kind(source)
    assert (made.__class__, str(made.device), made.tolist()) == (kind, place, [[1] * 3] * 2)
    made.sum().backward()
    assert source.grad is not None
    assert source.grad.tolist() == [[1] * 3] * 2


def test_a_subclass_is_made_of_values_and_sizes() -> None:
    assert isinstance(Made([1.0, 2.0]), Made)
    assert Made(2, 3).shape == (2, 3)
    assert torch.Tensor([1.0]).tolist() == [1]
