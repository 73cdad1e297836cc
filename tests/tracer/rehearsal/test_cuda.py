"""`torch.cuda` answers as on a machine with two GPUs."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

pytest.importorskip("torch")

import torch

pytestmark = pytest.mark.usefixtures("two_gpus")
HERE = torch.device("cuda", 0)


def test_there_are_two_devices() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 2
    assert torch.cuda.current_device() == 0
    assert torch.version.cuda
    assert torch.backends.cuda.is_built()
    assert torch.get_device_module() is torch.get_device_module("cuda") is torch.cuda


@pytest.mark.parametrize(
    "use",
    [
        lambda: torch.ones(1, device="cuda"),
        lambda: torch.cuda.set_device(0),
        lambda: torch.cuda.current_device(),
        lambda: torch.cuda.get_device_properties(1),
        lambda: torch.cuda.synchronize(),
        lambda: torch.accelerator.set_device_index(1),
    ],
)
def test_cuda_starts_with_its_first_use(use: Callable[[], object]) -> None:
    torch.manual_seed(0)
    assert torch.cuda.device_count() == 2
    assert not torch.cuda.is_initialized()
    use()
    assert torch.cuda.is_initialized()


def test_a_driver_that_tells_of_others_is_not_asked() -> None:
    """Before torch 2.13 it is, by the number of devices that a program sees."""
    assert torch.cuda._device_count_nvml() == 2
    assert torch.nn.DataParallel(torch.nn.Linear(2, 2)).device_ids == [0, 1]


def test_the_current_device_is_a_stack_of_contexts() -> None:
    with torch.cuda.device(1):
        assert torch.ones(1, device="cuda").device.index == 1
        with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            assert torch.ones(1).cuda().device.index == 0
        assert torch.cuda.current_device() == 1
    torch.cuda.set_device("cuda:1")
    assert torch.accelerator.current_device_index() == 1
    torch.cuda.set_device(0)


def test_properties() -> None:
    properties = torch.cuda.get_device_properties("cuda:1")
    assert properties.total_memory == 1 << 30
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor)
    assert torch.cuda.get_device_name(1) == properties.name
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_properties(2)


def test_memory_statistics() -> None:
    kept = torch.ones(1 << 20, device="cuda")
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.cuda.memory_allocated() == 4 << 20
    assert stats["allocation.all.current"] == 1
    assert torch.cuda.mem_get_info() == ((1 << 30) - (4 << 20), 1 << 30)
    assert torch.accelerator.memory_allocated() == 4 << 20
    assert torch.cuda.memory_allocated(1) == 0
    del kept
    assert torch.cuda.memory_allocated() == 0
    assert torch.cuda.max_memory_allocated() == 4 << 20
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 0
    assert "Allocated memory" in torch.cuda.memory_summary()
    torch.cuda.empty_cache()


def test_streams_and_events() -> None:
    side = torch.cuda.Stream()
    done, later = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        result = torch.ones(2, device="cuda") * 2
        done.record()
    assert torch.cuda.current_stream() == torch.cuda.default_stream() != side
    torch.cuda.current_stream().wait_stream(side)
    side.wait_event(done)
    result.record_stream(side)
    side.record_event(later)
    later.synchronize()
    assert done.query()
    assert side.query()
    assert done.elapsed_time(later) >= 0
    assert "cuda:0" in repr(side)
    assert len({side, side, torch.cuda.default_stream()}) == 2
    assert isinstance(torch.Stream("cuda"), torch.cuda.Stream)


def test_a_stream_brings_its_device() -> None:
    with torch.cuda.stream(torch.cuda.Stream("cuda:1")):
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0


@pytest.mark.parametrize(("timed", "message"), [(False, "enable_timing"), (True, "recorded")])
def test_times_that_were_not_taken(timed: bool, message: str) -> None:
    events = [torch.cuda.Event(enable_timing=timed) for _ in range(2)]
    with pytest.raises(ValueError, match=message):
        events[0].elapsed_time(events[1])


def test_random_numbers_follow_seeds_and_states() -> None:
    torch.cuda.manual_seed_all(3)
    state = torch.cuda.get_rng_state()
    first = torch.randn(3, device="cuda")
    with torch.random.fork_rng(devices=[0, 1]):
        torch.randn(7, device="cuda")
    second = torch.randn(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.randn(3, device="cuda"), first)
    assert torch.equal(torch.randn(3, device="cuda"), second)
    assert len(torch.cuda.get_rng_state_all()) == 2


def test_generators_say_where_they_are() -> None:
    generator = torch.Generator("cuda:1").manual_seed(5)
    assert generator.device == torch.device("cuda:1")
    assert isinstance(generator, torch.Generator)
    assert isinstance(torch.default_generator, torch.Generator)
    assert torch.Generator().device.type == "cpu"
    drawn = torch.randn(3, device="cuda:1", generator=generator)
    again = torch.Generator("cuda:1").manual_seed(5)
    assert torch.equal(drawn, torch.randn(3, device="cuda:1", generator=again))


@pytest.mark.parametrize("make", [
    lambda: torch.ones(2), lambda: torch.tensor([1.0]), lambda: torch.arange(3),
    lambda: torch.randperm(3), lambda: torch.nn.Linear(2, 2).weight, lambda: torch.as_tensor([1]),
    lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,)).to_dense(),
])  # fmt: skip
def test_default_devices(make: object) -> None:
    with torch.device("cuda"):
        assert make().device == HERE  # type: ignore[operator]
    torch.set_default_device("cuda:1")
    try:
        assert torch.get_default_device() == torch.device("cuda:1")
        assert make().device.index == 1  # type: ignore[operator]
        assert torch.ones(1, device="cpu").device.type == "cpu"
    finally:
        torch.set_default_device(None)


@pytest.mark.filterwarnings("ignore:.*set_default_tensor_type.*")
def test_tensor_types_of_old() -> None:
    assert torch.cuda.FloatTensor(2, 3).device == HERE
    assert torch.cuda.LongTensor([1, 2]).tolist() == [1, 2]
    assert isinstance(torch.ones(1).cuda(), torch.cuda.FloatTensor)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    torch.set_default_tensor_type(torch.cuda.HalfTensor)
    try:
        assert torch.ones(1).type() == "torch.cuda.HalfTensor"
    finally:
        torch.set_default_tensor_type(torch.FloatTensor)
    assert torch.ones(1).type() == "torch.FloatTensor"


def test_graphs_are_refused_plainly() -> None:
    with pytest.raises(NotImplementedError, match="CUDA graphs are not simulated"):
        torch.cuda.CUDAGraph()
    assert not torch.cuda.is_current_stream_capturing()


def test_marks_and_profilers_do_no_harm() -> None:
    with torch.cuda.nvtx.range("step"), torch.profiler.profile() as profiled:
        torch.ones(2, device="cuda") + 1
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()
    assert len(profiled.key_averages()) > 0


def test_copies_of_modules_stay_on_their_device() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).to("cuda:1")
    copied = copy.deepcopy(model)
    assert {each.device.index for each in copied.state_dict().values()} == {1}
    assert copied[0].weight.data_ptr() != model[0].weight.data_ptr()
