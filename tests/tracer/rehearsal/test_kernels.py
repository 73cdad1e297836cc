"""Operations that a GPU computes in types the CPU has no kernel for."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_device")


def test_counting_integers_works_as_on_a_gpu() -> None:
    counted = torch.histc(torch.tensor([0, 1, 1, 3], device="cuda", dtype=torch.int32), 4, 0, 3)
    assert counted.tolist() == [1, 2, 0, 1]
    assert counted.dtype == torch.int32
    assert counted.is_cuda


def test_the_cpu_alone_still_refuses_to() -> None:
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        torch.histc(torch.tensor([0, 1], dtype=torch.int32), 4, 0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_that_only_a_gpu_pools(dtype: Any) -> None:
    values = torch.arange(8.0, device="cuda", dtype=dtype).view(1, 2, 2, 2)
    with pytest.raises(NotImplementedError, match="not implemented for"):
        torch.nn.functional.avg_pool3d(values.cpu(), 2)
    pooled = torch.nn.functional.avg_pool3d(values, 2)
    assert (pooled.item(), pooled.dtype, pooled.is_cuda) == (3.5, dtype, True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_is_written_in_place_is_written_into_the_same_memory(dtype: Any) -> None:
    written = torch.zeros(1, 1, 1, 1, device="cuda", dtype=dtype)
    view = written[:]
    values = torch.ones(1, 2, 2, 2, device="cuda", dtype=dtype)
    torch._C._nn.avg_pool3d(values, 2, out=written)
    assert view.item() == 1


def test_what_takes_no_half_precision_anywhere_names_the_type_it_was_given() -> None:
    values = torch.ones(2, device="cuda")
    for dtype, name in ((torch.float16, "Half"), (torch.bfloat16, "BFloat16")):
        with pytest.raises(NotImplementedError, match=f"bitwise_and_cuda.* '{name}'"):
            torch.bitwise_and(values.to(dtype), values.to(dtype))
    with pytest.raises(NotImplementedError, match=r"tril_indices.* 'Half'"):
        torch.tril_indices(3, 3, dtype=torch.float16, device="cuda")


def test_kernels_that_the_cpu_alone_keeps() -> None:
    """What a GPU refuses works on tensors of the host beside it."""
    assert torch.ones(2, 2).long().mm(torch.ones(2, 2).long()).tolist() == [[2, 2]] * 2
    assert torch.histogram(torch.ones(3), 2).hist.sum() == 3
    assert torch.linalg.cholesky(torch.eye(2)).is_cpu


def test_a_type_of_two_numbers_is_the_wider_one() -> None:
    half, single = (torch.ones(2, device="cuda", dtype=each) for each in (torch.half, torch.float))
    assert torch.igamma(half, single).dtype == torch.float32
    with pytest.raises(NotImplementedError, match="igamma_cuda"):
        torch.igamma(half, half)


def test_half_precision_in_a_short_time_fourier_transform() -> None:
    window = torch.ones(8, device="cuda", dtype=torch.float16)
    found = torch.stft(torch.ones(64, device="cuda").half(), 8, window=window, return_complex=True)
    assert found.dtype == torch.complex32
    with pytest.raises(RuntimeError, match=r"powers of two .* signal size of\[10\]"):
        torch.stft(torch.ones(64, device="cuda").half(), 10, return_complex=True)


def test_copying_with_a_conversion_in_one_call() -> None:
    values = torch.ones(2, device="cuda")
    copied = values.to(copy=True, dtype=torch.float32, device=values.device)
    assert copied is not values
    assert copied.data_ptr() != values.data_ptr()
    assert values.to("cuda", torch.float32, False, True) is not values
    assert values.to(torch.float32, False, True) is not values
    assert values.to(torch.float32, False) is values


POWERS = torch.fft.fft, torch.fft.rfft, torch.fft.rfft2, torch.fft.ihfft, torch.fft.irfft


@pytest.mark.parametrize("transform", POWERS)
def test_transforms_in_half_precision(transform: Any) -> None:
    length = 9 if transform is torch.fft.irfft else 8
    values = torch.randn(4, length, device="cuda")
    found, expected = transform(values.half()), transform(values)
    assert found.dtype == (torch.complex32 if expected.is_complex() else torch.float16)
    torch.testing.assert_close(found.to(expected.dtype), expected, atol=0.05, rtol=0.05)


@pytest.mark.parametrize(("shape", "options", "told"), [
    ((6,), {}, r"\[6\]"), ((8,), {"n": 6}, r"\[6\]"), ((4, 6), {"dim": (0, 1)}, r"\[4, 6\]"),
    ((3, 8), {"s": (3, -1)}, r"\[3, 8\]"),
])  # fmt: skip
def test_half_precision_wants_powers_of_two(shape: Any, options: Any, told: str) -> None:
    transform = torch.fft.fft if "n" in options or not options else torch.fft.fft2
    with pytest.raises(RuntimeError, match=f"sizes are powers of two .* signal size of{told}"):
        transform(torch.ones(shape, device="cuda", dtype=torch.float16), **options)


def test_there_is_no_transform_of_bfloat16() -> None:
    with pytest.raises(RuntimeError, match="Unsupported dtype BFloat16"):
        torch.fft.fft(torch.ones(8, device="cuda", dtype=torch.bfloat16))


@pytest.mark.parametrize("work", [
    lambda x: torch.linalg.pinv(x), lambda x: x.conj() * x, lambda x: x.mH @ x, lambda x: x.conj(),
    lambda x: torch.view_as_real(x.conj().resolve_conj()), lambda x: x.conj().imag * 2,
    lambda x: torch.fft.hfft(x), lambda x: torch.linalg.lstsq(x, x).solution,
    lambda x: torch.linalg.vecdot(x, x.mT.mH),
])  # fmt: skip
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_conjugates(work: Any, device: str) -> None:
    torch.manual_seed(0)
    values = torch.randn(4, 4, dtype=torch.complex64)
    with torch.utils._python_dispatch._disable_current_modes():
        expected = work(values)
    found = work(values.to(device))
    assert found.is_conj() == expected.is_conj()
    torch.testing.assert_close(found.cpu(), expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("work", [
    lambda x: x.cumprod(0), lambda x: x.cummax(0)[0], lambda x: x.trace(), lambda x: x.prod(),
    lambda x: x.as_strided((2,), (1,)), lambda x: x.sgn(), lambda x: x.quantile(0.3, 0),
    lambda x: x.select_scatter(x[0], 0, 1), lambda x: x[0] @ x, lambda x: x.repeat(0, 1),
    lambda x: torch.stft(x.flatten(), 4, return_complex=True).abs(), torch.linalg.det,
])  # fmt: skip
def test_what_formulas_of_autograd_make_lies_with_what_they_work_on(work: Any) -> None:
    values = torch.arange(1.0, 10.0).view(3, 3).sin()
    gradients = []
    for device in ("cpu", "cuda", "cpu"):
        leaf = values.to(device, copy=True).requires_grad_()
        work(leaf).sum().backward()
        assert leaf.grad.device.type == device
        gradients.append(leaf.grad.cpu())
    torch.testing.assert_close(gradients[1], gradients[0])
    torch.testing.assert_close(gradients[2], gradients[0])


def test_what_a_backward_pass_of_the_programs_own_makes_lies_where_it_says() -> None:
    found: list[Any] = []

    class Own(torch.autograd.Function):  # type: ignore[name-defined,misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            found.extend([torch.ones(2), torch.ones(2, device="cuda"), torch.zeros_like(gradient)])
            return gradient * 2

    leaf = torch.ones(2, device="cuda", requires_grad=True)
    leaf.register_hook(lambda gradient: found.append(torch.ones(2)))
    Own.apply(leaf).sin().sum().backward()
    assert [each.device.type for each in found] == ["cpu", "cuda", "cuda", "cpu"]


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("form", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_sparse_tensors_are_trained(form: str) -> None:
    sparse = getattr(torch.eye(3, device="cuda"), form)().requires_grad_()
    product = sparse @ torch.ones(3, 2, device="cuda")
    (gradient,) = torch.autograd.grad(product.sum(), sparse)
    assert gradient.is_cuda
    assert gradient.to_dense().tolist() == [[2, 2, 2]] * 3


def test_a_kernel_that_only_the_cpu_has() -> None:
    sparse = torch.eye(3, device="cuda").to_sparse_csr()
    with pytest.raises(NotImplementedError, match="from the 'SparseCsrCUDA' backend"):
        torch.sparse.mm(sparse, torch.ones(3, 2, device="cuda"), "amax")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dynamically_quantized_layers_compute_on_the_cpu_only() -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(4, 2)).eval()
    quantized = torch.ao.quantization.quantize_dynamic(layers, {torch.nn.Linear})
    assert quantized(torch.ones(1, 4)).device.type == "cpu"
    with pytest.raises(NotImplementedError, match=r"linear_dynamic' .* from the 'CUDA' backend"):
        quantized.to("cuda")(torch.ones(1, 4, device="cuda"))


def test_functions_that_ask_where_their_arguments_lie() -> None:
    x = torch.arange(6.0, device="cuda")
    rows, columns = torch.unravel_index(torch.tensor([5, 2], device="cuda"), (2, 3))
    assert (rows.tolist(), columns.tolist(), rows.is_cuda) == ([1, 0], [2, 2], True)
    with pytest.raises(RuntimeError, match="to be on cpu, but it's on cuda:0"):
        torch.tensor_split(x, torch.tensor([2], device="cuda"))
    assert [len(part) for part in torch.tensor_split(x, torch.tensor([2]))] == [2, 4]
    weights = torch.ones(6, device="cuda")
    assert torch.cov(x, aweights=weights).is_cuda
    assert torch.corrcoef(torch.stack([x, -x])).round().tolist() == [[1, -1], [-1, 1]]


def test_matrices_in_float8_have_the_sizes_that_a_gpu_takes() -> None:
    def multiplied(*sizes: int) -> Any:
        rows, inner, columns = sizes
        one = torch.ones(rows, inner, device="cuda").to(torch.float8_e4m3fn)
        other = torch.ones(columns, inner, device="cuda").to(torch.float8_e4m3fn).t()
        scale = torch.ones((), device="cuda")
        return torch._scaled_mm(one, other, scale, scale, out_dtype=torch.float32)

    assert multiplied(16, 32, 16).unique().tolist() == [32]
    with pytest.raises(RuntimeError, match=r"mat1 to be divisible by 16 .*16x41"):
        multiplied(16, 41, 16)
    with pytest.raises(RuntimeError, match=r"mat2 shape .32x17. must be divisible by 16"):
        multiplied(16, 32, 17)
