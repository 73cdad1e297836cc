"""What programs seldom ask of GPUs is answered as on a machine with them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.cuda import comm  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from tensortrail.tracer.rehearsal.lacks import NotRehearsed, NotShared  # noqa: E402

pytestmark = pytest.mark.usefixtures("two_gpus")


def test_versions_and_types() -> None:
    assert torch.cuda.nccl.version()[0] == 2
    assert torch.float16 in torch.accelerator.get_device_capability()["supported_dtypes"]
    properties = torch.cuda.get_device_properties(1)
    assert repr(properties).startswith("_CudaDeviceProperties(name='Simulated GPU', major=9")
    assert str(properties.uuid) != str(torch.cuda.get_device_properties(0).uuid)
    assert properties.clock_rate


def test_libraries_and_plans_of_a_gpu() -> None:
    from torch.backends import cuda

    assert cuda.preferred_linalg_library("magma") == cuda.preferred_linalg_library()
    assert cuda.preferred_blas_library("cublaslt") == cuda.preferred_blas_library()
    cuda.cufft_plan_cache.clear()
    cuda.cufft_plan_cache[1].max_size = 3
    assert cuda.cufft_plan_cache[1].max_size == 3
    assert cuda.cufft_plan_cache.max_size > 3


def test_settings_are_remembered() -> None:
    from torch.cuda import tunable

    assert (tunable.is_enabled(), tunable.tuning_is_enabled()) == (False, True)
    tunable.enable(True)
    tunable.set_filename("tuned.csv")
    assert (tunable.is_enabled(), tunable.get_filename()) == (True, "tuned.csv")
    assert tunable.get_results() == ()


@pytest.mark.skipif(
    not hasattr(torch.backends.cuda, "cublas_workspace_size"), reason="this torch has none"
)
def test_workspaces_of_cublas() -> None:
    assert torch.backends.cuda.cublas_workspace_size() == 32 * 2**20
    assert torch.backends.cuda.cublaslt_workspace_size(1024) == 1024


def test_errors_of_the_runtime() -> None:
    torch.cuda.check_error(0)
    with pytest.raises(torch.cuda.CudaError, match=r"out of memory \(2\)"):
        torch.cuda.check_error(2)


def test_a_raw_stream_is_the_current_one() -> None:
    stream = torch.cuda.Stream()
    assert torch._C._cuda_getCurrentRawStream(0) == 0
    with torch.cuda.stream(stream):
        assert torch._C._cuda_getCurrentRawStream(0) == stream.cuda_stream
        assert torch._C._cuda_getCurrentRawStream(1) == 0


@pytest.mark.skipif(not hasattr(torch.accelerator, "Graph"), reason="this torch has none")
def test_graphs_of_an_accelerator_are_not_simulated() -> None:
    with pytest.raises(NotRehearsed, match="CUDA graphs are not simulated"):
        torch.accelerator.Graph()


def test_a_part_of_the_memory_is_no_smaller_gpu() -> None:
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(2**-20)
    assert torch.cuda.mem_get_info() == (total, total)
    with pytest.raises(torch.OutOfMemoryError, match=r"in use\. 1\.00 KiB allowed; Of the"):
        torch.ones(2**20, device="cuda")
    torch.cuda.set_per_process_memory_fraction(1.0)


def test_statistics_of_pinned_memory_have_their_names() -> None:
    assert torch.cuda.host_memory_stats()["allocated_bytes.peak"] == 0
    assert torch.cuda.host_memory_stats()["host_alloc_time.count"] == 0


def test_memory_outside_of_tensors() -> None:
    pointer = torch.cuda.caching_allocator_alloc(1024)
    assert torch.cuda.memory_allocated() == torch.cuda.device_memory_used() == 1024
    torch.cuda.caching_allocator_delete(pointer)
    assert torch.cuda.memory_allocated() == 0
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        assert torch.ones(2, device="cuda").is_cuda
    torch.cuda.reset_peak_host_memory_stats()


def test_results_go_into_given_tensors() -> None:
    values = torch.arange(4.0, device="cuda")
    parts = [torch.empty(1, device="cuda:0"), torch.empty(3, device="cuda:1")]
    comm.scatter(values, out=parts)
    assert [each.tolist() for each in parts] == [[0], [1, 2, 3]]
    assert comm.gather(parts, out=torch.empty(4, device="cuda:1")).tolist() == [0, 1, 2, 3]
    copies = [torch.empty(4, device="cuda:0"), torch.empty(4, device="cuda:1")]
    assert comm.broadcast(values, out=copies)[1].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", ["Stream", "Event"])
def test_streams_and_events_are_not_copied(kind: str) -> None:
    made = getattr(torch.cuda, kind)()
    for copies in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=f"cannot pickle '{kind}' object"):
            copies(made)


def test_what_other_processes_would_need() -> None:
    tensor = torch.ones(2, device="cuda")
    assert tensor.is_shared()
    for asks in (tensor.untyped_storage()._share_cuda_, torch.cuda.Event().ipc_handle):
        with pytest.raises(NotShared):
            asks()
    assert torch.cuda.Stream.priority_range() == (0, -5)


def test_marks_and_times_of_profilers(capfd: pytest.CaptureFixture[str]) -> None:
    values = torch.ones(2, device="cuda")
    with torch.autograd.profiler.emit_nvtx(), torch.autograd.profiler.profile(use_device="cuda"):
        assert (values * 2).tolist() == [2, 2]
    assert "Failed to record CUDA event" not in capfd.readouterr().err


def test_waits_of_the_host_are_told() -> None:
    values = torch.ones(3, device="cuda")
    try:
        torch.cuda.set_sync_debug_mode("warn")
        assert torch.cuda.get_sync_debug_mode() == 1
        for waits in (values.sum().item, values.nonzero, values.cpu):
            with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
                waits()
        torch.cuda.set_sync_debug_mode("error")
        values + 1
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            bool(values.all())
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(
    "backend",
    [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION],
    ids=lambda backend: backend.name,
)
def test_attention_has_the_kernels_of_a_gpu(backend: Any) -> None:
    given = torch.ones(1, 2, 4, 8, device="cuda", dtype=torch.float16, requires_grad=True)
    with sdpa_kernel(backend):
        F.scaled_dot_product_attention(given, given, given).sum().backward()
        with pytest.raises(RuntimeError, match="No available kernel"):
            F.scaled_dot_product_attention(*[given.detach().double()] * 3)
    assert given.grad.is_cuda


def test_flash_attention_takes_no_float32() -> None:
    given = torch.ones(1, 2, 4, 8, device="cuda")
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match="No available"):
        F.scaled_dot_product_attention(given, given, given)
    asked = torch.backends.cuda.SDPAParams(given, given, given, None, 0.0, False, False)
    assert not torch.backends.cuda.can_use_flash_attention(asked)
    assert torch.backends.cuda.can_use_efficient_attention(asked)
