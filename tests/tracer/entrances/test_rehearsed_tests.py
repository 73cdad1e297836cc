"""`pytest --rehearse`: tests that ask for GPUs run on simulated ones, each on clean ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.tracer.entrances.expected_failures import Expected, expected_failures
from tensortrail.tracer.reading.timeline import open_run
from tests import warm

CONFTEST = "import torch\nTHERE = torch.cuda.is_available()\n"
TESTS = """\
import subprocess, sys, unittest
import pytest, torch
from conftest import THERE

assert THERE == torch.cuda.is_available()
two = pytest.mark.skipif(torch.cuda.device_count() != 2, reason="needs two GPUs")

@two
def test_two_devices():
    assert torch.ones(3, device="cuda:1").sum().item() == 3
    assert torch.cuda.get_device_properties(1).total_memory == 2**30
    assert torch.cuda.is_bf16_supported() and torch.cuda.get_device_capability() == (9, 0)

@two
def test_meets():
    torch.nn.Linear(3, 3).cuda()(torch.ones(2, 3))

@two
def test_is_too_large():
    torch.empty(2 * 2**30, dtype=torch.uint8, device="cuda")

@two
def test_captures():
    torch.cuda.CUDAGraph()

@two
def test_captures_and_catches():
    try:
        torch.cuda.CUDAGraph()
    except NotImplementedError:
        pass

@two
def test_measures():
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    end.record()
    assert begin.elapsed_time(end) >= 0

@two
def test_has_kernels():
    import triton

@two
def test_starts_a_program():
    source = "import torch; torch.distributed.get_rank(); assert torch.cuda.is_available()"
    try:
        subprocess.run([sys.executable, "-c", source], check=True, stderr=subprocess.PIPE)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(error.stderr.decode())

@two
def test_passes_without_kernels():
    assert torch.compile(torch.sin)(torch.zeros(2, device="cuda")).sum() == 0

@two
def test_reads_code():
    from torch._inductor.utils import run_and_get_code
    run_and_get_code(torch.compile(torch.cos), torch.zeros(2, device="cuda"))

@two
def test_asks_for_graphs():
    torch.compile(torch.tan, mode="reduce-overhead")(torch.zeros(2, device="cuda"))

@two
def test_leaves_things_behind():
    torch.cuda.set_device(1)
    torch.set_default_device("cuda")
    torch.set_default_dtype(torch.float64)
    torch.cuda.set_stream(torch.cuda.Stream())
    torch.cuda.is_bf16_supported = lambda: False
    torch.ones = torch.zeros

@two
def test_finds_none_of_it():
    assert torch.cuda.current_device() == 0
    assert torch.ones(1).device.type == "cpu"
    assert torch.ones(1).dtype == torch.float32
    assert torch.ones(1).item() == 1
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert torch.cuda.is_bf16_supported()

KEPT = []

@two
def test_keeps_memory():
    KEPT.append(torch.ones(100_000, device="cuda"))
    KEPT.append(torch.rand(1).item())
    assert torch.cuda.memory_allocated() > 0

@two
def test_has_its_own_memory_and_numbers():
    assert torch.cuda.memory_allocated() == torch.cuda.max_memory_allocated() == 0
    assert KEPT == [] or torch.rand(1).item() == KEPT[1]
    KEPT.clear()
    assert torch.cuda.memory_allocated() == 0

@pytest.fixture(scope="module")
def weight():
    torch.cuda.set_device(1)
    yield torch.ones(1000, device="cuda")
    torch.cuda.set_device(0)

@two
@pytest.mark.parametrize("time", range(2))
def test_fixtures_of_a_module_stay(weight, time):
    assert weight.device.index == torch.cuda.current_device() == 1
    assert torch.cuda.memory_allocated(1) == 4096

@two
def test_compares_types():
    weight = torch.nn.Parameter(torch.ones(2))
    assert type(weight.data.cuda()) is type(torch.ones(2)) is torch.Tensor
    assert type(torch.nn.Linear(2, 2).cuda().weight) == type(weight)
    assert type(weight.cuda()) is not type(weight)

@two
def test_patches_for_itself(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

def test_fails_otherwise():
    assert 1 == 2

@unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
class TestCase(unittest.TestCase):
    def test_is_on_the_device(self):
        self.assertEqual(torch.ones(2, device="cuda").sum().item(), 2)

    def test_lacks_a_graph(self):
        torch.cuda.CUDAGraph()

    def test_lacks_kernels(self):
        raise ImportError("Requires mslk >= 1.0.0")

    def test_meets_too(self):
        torch.ones(2, device="cuda") + torch.ones(2)
"""
KERNELS = "import triton\n\ndef test_it(): ...\n"


def ran(folder: Path, *options: str) -> tuple[int, dict[str, str], str]:
    """Exit code, how each test ended, and all that was shown."""
    done = warm.run([*warm.PYTEST, "-rA", *options], folder)
    ended: dict[str, str] = {}
    for line in done.stdout.splitlines():
        word, _, rest = line.partition(" ")
        if word in ("PASSED", "FAILED", "XFAIL", "XPASS", "ERROR") and "::" in rest:
            ended[rest.split(" - ")[0].partition("::")[2]] = word
    return done.returncode, ended, done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "test_kernels.py").write_text(KERNELS)
    return tmp_path


PASSED = {
    "test_two_devices", "test_leaves_things_behind", "test_finds_none_of_it", "test_keeps_memory",
    "test_has_its_own_memory_and_numbers", "test_fixtures_of_a_module_stay[0]",
    "test_fixtures_of_a_module_stay[1]", "test_patches_for_itself",
    "test_compares_types", "test_passes_without_kernels",
    "TestCase::test_is_on_the_device",
}  # fmt: skip


def check(text: str) -> None:
    """What is told is the same in one process and in several."""
    assert "changed by tests, and restored: 6" in text
    for left in ("the current device: cuda:1, before it cuda:0", "the default device: cuda",
                 "the default dtype: torch.float64", "torch.ones: another function",
                 "torch.cuda.is_bf16_supported: another function",
                 "the current stream of cuda:1: <torch.cuda.Stream"):  # fmt: skip
        assert f"test_it.py::test_leaves_things_behind  {left}" in text
    assert "3 x CUDA graphs are not simulated" in text
    assert "about what was replaced by a stand-in:\n  1 x inductor makes no kernels" in text
    assert "1 x inductor makes no kernels in a rehearsal, so there is no code" in text
    assert "1 x CUDA graphs are not captured in a rehearsal" in text
    assert "1 x times on a simulated device are those of the CPU" in text
    assert "1 x devices are not simulated in another program" in text
    assert "triton is not installed here" in text
    assert "1 x mslk is not installed here" in text
    assert "failed, and not explained: 1\n  test_it.py::test_fails_otherwise" in text


@pytest.mark.skipif("triton" in sys.modules, reason="the tests expect no triton")
@pytest.mark.complete
def test_each_test_on_clean_devices(folder: Path) -> None:
    code, ended, text = ran(folder, "--rehearse", "cuda:2x1GiB")
    assert code == 1
    assert {name for name, word in ended.items() if word == "PASSED"} == PASSED
    failed = {name for name, word in ended.items() if word != "PASSED"}
    meets = {"test_meets", "TestCase::test_meets_too"}
    assert failed == {*meets, "test_is_too_large", "test_fails_otherwise"}
    check(text)
    assert "failed, and explained above: 3" in text
    assert "no trail is kept: with --tensortrail, `tensortrail why` answers" in text
    assert "input   cpu     float32 2x3" in text
    assert "cause    OFF113 memory ran out: 2.00 GiB on cuda:0, where 1.00 GiB of 1.00 GiB" in text
    assert "tensortrail/tracer" not in text, "frames of ours in a traceback"
    assert not (folder / ".tensortrail").exists()


@pytest.mark.complete
def test_in_processes_of_xdist_with_a_trail_and_expected_failures(folder: Path) -> None:
    pytest.importorskip("xdist")
    (folder / "known.txt").write_text(
        "# known\n\ntest_it.py::test_meets  # the input\n*too_large\n"
    )
    expected = ("--rehearse-xfail", "known.txt")
    trail = ("--tensortrail", "--tensortrail-directory", "run")
    code, ended, text = ran(folder, "-n", "2", "--rehearse", "cuda:2x1GiB", *expected, *trail)
    assert code == 1
    assert {name for name, word in ended.items() if word == "PASSED"} == PASSED
    failed = {name: word for name, word in ended.items() if word != "PASSED"}
    assert failed == {
        "test_meets": "XFAIL", "test_is_too_large": "XFAIL", "test_fails_otherwise": "FAILED",
        "TestCase::test_meets_too": "FAILED",
    }  # fmt: skip
    check(text)
    assert "error DEV502  test_it.py:" in text
    assert "more: tensortrail report run  (" in text
    assert "no trail is kept" not in text
    assert {each.name for each in (folder / "run").iterdir()} >= {"gw0", "gw1"}
    assert len(open_run(folder / "run").processes) >= 2


def test_unittest_runs_on_simulated_devices(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import unittest, torch\n"
        "@unittest.skipUnless(torch.cuda.device_count() == 2, 'needs two GPUs')\n"
        "class Tests(unittest.TestCase):\n"
        "    def test_there(self): self.assertTrue(torch.ones(2, device='cuda:1').is_cuda)\n"
        "    def test_lacks(self): torch.cuda.CUDAGraph()\n"
        "    def test_meets(self): torch.ones(2, device='cuda') + torch.ones(2)\n"
    )
    command = ["-m", "tensortrail", "trace", "--rehearse", "cuda:2", "-m", "unittest", "test_it"]
    done = warm.run(command, tmp_path)
    assert done.returncode == 1
    assert "FAILED (errors=1, skipped=1)" in done.stderr
    assert "Ran 3 tests" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rehearse", "cuda:2x24"), "did you mean cuda:2x24GiB?"),
        (("--rehearse", "gpu"), "write cuda, cuda:2 for two"),
        (("--rehearse", "cuda:0"), "cuda:1 simulates one, which is named cuda:0"),
        (("--rehearse", "cuda", "--rehearse-xfail", "missing.txt"), "missing.txt"),
        (("--rehearse-xfail", "missing.txt"), "needs --rehearse"),
    ],
)
def test_what_cannot_start_says_why(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): ...\n")
    code, ended, text = ran(tmp_path, *options)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert message in text
    assert not ended


def test_accelerators_answer_as_cuda_does() -> None:
    import torch

    from tensortrail.tracer.rehearsal.devices.spec import parse_spec
    from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

    with Rehearsal(parse_spec("cuda:2x1GiB")):
        here = torch.accelerator.current_accelerator(check_available=True)
        assert here is not None
        assert here.type == "cuda"
        assert torch.accelerator.is_available()
        assert torch.accelerator.device_count() == torch.cuda.device_count() == 2
        assert torch.get_device_module() is torch.get_device_module("cuda") is torch.cuda
        torch.accelerator.set_device_index(1)
        assert torch.cuda.current_device() == torch.accelerator.current_device_index() == 1
        kept = torch.ones(1000, device=here)
        assert kept.device == torch.device("cuda:1")
        assert torch.accelerator.memory_allocated() == torch.cuda.memory_allocated() == 4096
        assert not torch.xpu.is_available()
        assert not torch.backends.mps.is_available()


def test_files_of_expected_failures(tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_text("#\n\na.py::test_one  # the reason\nb.py\nc.py::test_two[x-1]\n*::test_g*\n")
    one, whole, parameters, pattern = expected_failures(str(file))
    assert one == Expected("a.py::test_one", "the reason")
    assert one.fits("a.py::test_one")
    assert one.fits("a.py::test_one[2]")
    assert not one.fits("a.py::test_one_more")
    assert whole.fits("b.py::Class::test")
    assert parameters.fits("c.py::test_two[x-1]")
    assert not parameters.fits("c.py::test_two[x-2]")
    assert pattern.fits("d.py::test_gradients")
    assert not pattern.fits("d.py::test_values")


@pytest.mark.parametrize(
    ("source", "asks"),
    [
        ("assert type(x) is type(y)", True),
        ("def f(x):\n    return type(x) in (A, B)", True),
        ("print(type(x))", False),
        ("isinstance(x, type) and type(x) is A", False),
        ("def f(type):\n    return type(1) == 2", False),
        ("x.type(1) == 2", False),
        ("type(x) is type(", False),
    ],
)
def test_files_that_compare_types(source: str, asks: bool) -> None:
    from tensortrail.tracer.rehearsal.asked_types import compares_types

    assert compares_types(source) is asks


def test_our_own_files_keep_their_type() -> None:
    """Also where tensortrail itself lies below the folder of the tests."""
    from tensortrail.tracer.rehearsal.asked_types import OURS, AskedTypes

    ours = {name: each for name, each in sys.modules.items() if name.startswith("tensortrail")}
    types = AskedTypes(OURS.parent)
    try:
        types.answer(ours)
        assert not [name for name, each in ours.items() if "type" in vars(each)]
    finally:
        types.end()
