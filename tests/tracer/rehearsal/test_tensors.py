"""Tensors of a simulated device, as scripts look at them, change them and store them."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

pytestmark = pytest.mark.usefixtures("two_gpus")


def square() -> Any:
    return torch.arange(4.0, device="cuda").view(2, 2)


def test_what_it_says_of_itself() -> None:
    x = square()
    assert (x.is_cuda, x.is_cpu, x.device.type, x.get_device()) == (True, False, "cuda", 0)
    assert torch.is_tensor(x)
    assert x.type() == "torch.cuda.FloatTensor"
    assert repr(x) == "tensor([[0., 1.],\n        [2., 3.]], device='cuda:0')"
    assert repr(nn.Parameter(x)).endswith("device='cuda:0', requires_grad=True)")
    assert "grad_fn=<MulBackward0>" in repr(x.requires_grad_() * 2)
    assert f"{x[1, 1]:.2f}" == "3.00"
    assert (len(x), x.tolist(), float(x[0, 1]), int(x[1, 0])) == (2, [[0, 1], [2, 3]], 1.0, 2)
    assert [row.device.type for row in x] == ["cuda", "cuda"]
    assert {x: 1}[x] == 1


@pytest.mark.parametrize(
    "written",
    [
        lambda x, out: torch.add(x, x, out=out), lambda x, out: torch.zeros(3, out=out),
        lambda x, out: torch.cat([x, x], out=out), lambda x, out: torch.randn(2, out=out),
        lambda x, out: torch.mm(x, x.T, out=out), lambda x, out: torch.zeros(0, 2, out=out),
        lambda x, out: out.set_(x.T), lambda x, out: out.resize_(3, 2),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:An output with one or more elements")
def test_what_is_written_into_has_the_shape_of_what_was_written(written: Any) -> None:
    out = torch.empty(0, device="cuda")
    told = (out.shape, out.stride(), written(square(), out) is out, out.shape, out.stride())
    plain = torch.empty(0)
    on_host = (plain.shape, plain.stride(), written(square().cpu(), plain) is plain)
    assert told == (*on_host, plain.shape, plain.stride())


def test_gradients_follow_a_change_of_type() -> None:
    layer = nn.Linear(2, 2).cuda()
    weight = layer.weight
    for dtype in (torch.float64, torch.float16, torch.float32):
        layer(square().to(weight.dtype)).sum().backward()
        layer.to(dtype)
        assert (layer.weight is weight, weight.dtype, weight.grad.dtype) == (True, dtype, dtype)
    assert weight.grad.tolist() == [[6, 12], [6, 12]]
    weight.data = weight.data.double()
    assert (weight.dtype, weight.grad.dtype) == (torch.float64, torch.float32)


def test_a_copy_has_the_attributes_of_the_original() -> None:
    x = square()
    x.names_of_rows = ["first", "second"]
    made = copy.deepcopy(x)
    assert made.names_of_rows == x.names_of_rows
    assert made.names_of_rows is not x.names_of_rows
    assert (made.device, made.tolist()) == (x.device, x.tolist())


def test_its_storage_is_on_the_device_too() -> None:
    x = square()
    storage = x.untyped_storage()
    assert (storage.device, storage.is_cuda) == (torch.device("cuda:0"), True)
    assert storage.cpu().device.type == "cpu"
    assert storage.cpu().cuda(1).device.index == 1
    assert x.storage().type() == "torch.cuda.FloatStorage"
    assert x[0].untyped_storage().data_ptr() == storage.data_ptr()


@pytest.mark.parametrize("export", [
    lambda x: x.__dlpack__(), lambda x: torch.utils.dlpack.to_dlpack(x), torch.from_dlpack,
    lambda x: x.__cuda_array_interface__,
])  # fmt: skip
def test_memory_is_not_given_away(export: Callable[[Any], Any]) -> None:
    with pytest.raises(BufferError, match="cannot be given to other libraries"):
        export(square())


def test_views_and_changes_in_place() -> None:
    x = torch.zeros(2, 3, device="cuda")
    row, flat = x[0], x.view(-1)
    row.add_(1)
    flat[5] = 9
    x.t_()
    x.unsqueeze_(0)
    assert x.shape == (1, 3, 2)
    assert x.tolist() == [[[1, 0], [1, 0], [1, 9]]]
    x.resize_(4)
    x.set_(torch.ones(2, device="cuda"))
    assert x.tolist() == [1, 1]


def test_gradients_through_changed_views() -> None:
    x = square().requires_grad_()
    doubled = x * 2
    doubled[0].mul_(3)
    doubled.sum().backward()
    assert x.grad.tolist() == [[6, 6], [2, 2]]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.add_(1)
    x.data.add_(1)  # has a version of its own
    assert torch.autograd.gradcheck(torch.sin, square().double().requires_grad_())


def test_gradients_move_with_their_parameters() -> None:
    layer = nn.Linear(3, 3)
    layer(torch.ones(1, 3)).sum().backward()
    for device in ("cuda:0", "cuda:1", "cpu", "cuda:0"):
        layer.to(device)
        assert str(layer.weight.grad.device) == device
        assert layer.weight.grad.tolist() == [[1, 1, 1]] * 3
    layer.weight.grad.data = layer.weight.grad.data.cpu()
    assert layer.weight.grad.device.type == "cpu"


def test_tied_weights_stay_tied() -> None:
    model = nn.Sequential(nn.Embedding(3, 2), nn.Linear(2, 3, bias=False))
    model[1].weight = model[0].weight
    model.cuda()
    assert model[1].weight is model[0].weight
    assert len(list(model.parameters())) == 1
    assert isinstance(model[0].weight, nn.Parameter)


@pytest.mark.parametrize("make", [
    lambda x: x.to_sparse(), lambda x: x.to_sparse_csr(), lambda x: x.to(torch.complex64),
    lambda x: x[None, None].to(memory_format=torch.channels_last), lambda x: x.bfloat16(),
    lambda x: x.to(torch.float8_e4m3fn), lambda x: x.double(), lambda x: x.to(torch.int8),
    lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), lambda x: x.new_tensor([1.0]),
    lambda x: torch.nn.functional.one_hot(x.long()), lambda x: torch.block_diag(x, x),
    lambda x: x.quantile(0.5), lambda x: torch.vmap(lambda row: row.sin().sum())(x),
    lambda x: torch.func.grad(lambda y: (y * y).sum())(x), lambda x: x.unique(),
    lambda x: torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, (x,)),
])  # fmt: skip
def test_all_kinds_lie_there(make: Callable[[Any], Any]) -> None:
    made = make(square())
    assert made.device == torch.device("cuda:0")
    assert made.cpu().device.type == "cpu"


def test_layouts_without_a_simulation_say_so() -> None:
    with pytest.raises(NotImplementedError, match=r"not simulated: use layout=torch\.jagged"):
        torch.nested.nested_tensor([square(), square()])
    with pytest.raises(NotImplementedError, match="run a first batch"):
        nn.LazyLinear(2).cuda()


@pytest.mark.parametrize("layer", [
    nn.LSTM(2, 3, 2, bidirectional=True), nn.GRU(2, 3), nn.RNN(2, 3),
    nn.TransformerEncoderLayer(2, 1, 4), nn.BatchNorm1d(2),
], ids=lambda layer: type(layer).__name__)  # fmt: skip
def test_layers_give_what_they_give_on_the_host(layer: Any) -> None:
    layer = copy.deepcopy(layer).eval()
    given = torch.randn(5, 2)
    expected = layer(given)
    result = layer.cuda()(given.cuda())
    first, wanted = (each[0] if isinstance(each, tuple) else each for each in (result, expected))
    assert first.is_cuda
    torch.testing.assert_close(first.cpu(), wanted.detach(), atol=1e-5, rtol=1e-5)


def test_pickles_and_copies() -> None:
    layer = nn.Linear(2, 2).to("cuda:1")
    again = pickle.loads(pickle.dumps(layer))
    assert again.weight.device == torch.device("cuda:1")
    assert isinstance(again.weight, nn.Parameter)
    assert copy.copy(layer.weight).data_ptr() == layer.weight.data_ptr()


AS_SAVED = ["cuda:0", "cpu", "cuda:1"]


@pytest.mark.parametrize(("location", "devices"), [
    (None, AS_SAVED), ("cpu", ["cpu"] * 3), ("cuda:1", ["cuda:1"] * 3),
    (torch.device("cuda", 0), ["cuda:0"] * 3), ({"cuda:0": "cuda:1"}, ["cuda:1", "cpu", "cuda:1"]),
    ({"cuda:1": "cpu"}, ["cuda:0", "cpu", "cpu"]), (lambda storage, at: storage, ["cpu"] * 3),
    (lambda storage, at: storage.cuda(1) if at == "cuda:0" else None, ["cuda:1", "cpu", "cuda:1"]),
    ("meta", ["meta"] * 3),
])  # fmt: skip
def test_every_way_to_say_where_a_file_goes(location: Any, devices: list[str]) -> None:
    file = io.BytesIO()
    torch.save([square(), torch.ones(1), torch.ones(1, device="cuda:1")], file)
    file.seek(0)
    loaded = torch.load(file, map_location=location, weights_only=not callable(location))
    assert [str(each.device) for each in loaded] == devices
    if devices[0] != "meta":
        assert loaded[0].tolist() == [[0, 1], [2, 3]]


def test_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    path = str(tmp_path / "a.safetensors")
    safetensors.save_file({"a": square(), "b": torch.ones(2)}, path)
    for device, expected in (
        ("cuda", "cuda:0"),
        ("cuda:1", "cuda:1"),
        (1, "cuda:1"),
        ("cpu", "cpu"),
    ):
        loaded = safetensors.load_file(path, device=device)
        assert str(loaded["a"].device) == expected
        assert loaded["a"].tolist() == [[0, 1], [2, 3]]


def test_a_moved_tensor_is_given_the_class_and_attributes_of_another() -> None:
    for made in (torch.ones(3), torch.nn.Parameter(torch.ones(3), requires_grad=False)):
        for source, device in ((made, "cuda"), (made.cuda(), "cpu")):
            source.note = "kept"
            moved = source.to(device)
            moved.__class__ = source.__class__
            moved.__dict__ = source.__dict__.copy()
            assert moved.device.type == device
            assert moved.note == "kept"
            assert moved.__dict__ == source.__dict__ == {"note": "kept"}
            moved.__dict__.update(more=1)
            assert moved.more == 1
            assert moved.__dict__ != source.__dict__
            assert torch.equal(moved.cpu(), torch.ones(3))
    own: Any = type("Own", (torch.Tensor,), {})
    there: Any = torch.ones(3, device="cuda")
    there.__class__ = own
    assert isinstance(there, own)
    assert there.cpu().__class__ is own


def test_a_view_in_inference_mode_is_of_a_tensor_with_gradients() -> None:
    weight = nn.Parameter(torch.ones(2, 3, device="cuda"))
    with torch.inference_mode():
        view, made = weight.t(), weight + 1
    assert not view.is_inference()
    assert made.is_inference()
    assert torch.equal((view * 2).cpu(), torch.full((3, 2), 2.0))


def test_two_tensors_are_swapped_whatever_device_they_are_on() -> None:
    weight, other = nn.Parameter(square()), torch.ones(3)
    weight.tag, known = "weight", weight
    torch.utils.swap_tensors(weight, other)
    assert (weight.device.type, weight.shape) == ("cpu", (3,))
    assert (other.device.type, other.shape, vars(other)) == ("cuda", (2, 2), {"tag": "weight"})
    assert weight is known
    assert not isinstance(weight, nn.Parameter)
    assert isinstance(other, nn.Parameter)
    assert other.sum().item() == 6
    with pytest.raises(RuntimeError, match="on the same device"):
        nn.functional.linear(other, torch.ones(2, 2))
    torch.utils.swap_tensors(other, there := torch.ones(1, device="cuda:1"))
    assert (other.device.index, there.device.index, there.shape) == (1, 0, (2, 2))
