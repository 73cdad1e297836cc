"""Other threads and processes of a rehearsed program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.tracer.recording.begin import begin
from tensortrail.tracer.recording.options import Options
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal
from tests import warm

pytestmark = pytest.mark.long


def _raised(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except RuntimeError as error:
        return error


def in_thread(work: Callable[[], Any]) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    if isinstance(results[0], Exception):
        raise results[0]
    return results[0]


def test_threads_of_a_recording_know_the_devices(tmp_path: Path) -> None:
    running = begin(tmp_path, Options(rehearse=parse_spec("cuda:2")))
    try:
        given = torch.ones(2, device="cuda")
        made = in_thread(lambda: (torch.ones(2, device="cuda:1"), given * 2))
        with pytest.raises(RuntimeError, match="at least two devices, cuda:1 and cuda:0"):
            made[0] + made[1]
    finally:
        running.stop()


@pytest.mark.usefixtures("two_gpus")
def test_threads_without_a_recording_know_the_devices_too() -> None:
    given = torch.ones(2, device="cuda")
    made = in_thread(
        lambda: (given * 2, torch.ones(1).cuda(1), torch.ones(1, device="cuda"), torch.ones(1))
    )
    assert [str(each.device) for each in made] == ["cuda:0", "cuda:1", "cuda:0", "cpu"]
    with pytest.raises(RuntimeError, match="at least two devices, cuda:0 and cpu"):
        in_thread(lambda: _raised(lambda: given + torch.ones(2)))


@pytest.mark.usefixtures("two_gpus")
def test_autocast_and_pools_of_threads_without_a_recording() -> None:
    layer = torch.nn.Linear(2, 2).cuda()

    def work(_: int) -> Any:
        with torch.autocast("cuda"):
            return layer(torch.ones(1, 2, device="cuda"))

    with ThreadPoolExecutor(2) as pool:
        assert {each.dtype for each in pool.map(work, range(4))} == {torch.float16}


@pytest.mark.usefixtures("two_gpus")
def test_what_a_backward_pass_computes_again_without_a_recording() -> None:
    def block(x: Any) -> Any:
        return (x * torch.full((2,), 3.0, device="cuda")).sin()

    leaf = torch.ones(2, device="cuda", requires_grad=True)
    torch.utils.checkpoint.checkpoint(block, leaf, use_reentrant=False).sum().backward()
    assert leaf.grad.device.type == "cuda"


def test_threads_are_as_before_afterwards() -> None:
    start = threading.Thread.start
    with Rehearsal(parse_spec("cuda")):
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
        assert "run" not in vars(thread)
    assert threading.Thread.start is start


@pytest.mark.usefixtures("two_gpus")
def test_each_thread_has_its_current_device() -> None:
    torch.cuda.set_device(1)
    assert in_thread(torch.cuda.current_device) == 0
    torch.cuda.set_device(0)


OF_THE_PARENT = """\
import torch
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __init__(self):
        self.images = torch.ones(4, 3).cuda()
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return self.images[index]WORK

if __name__ == "__main__":
    next(iter(DataLoader(Images(), batch_size=2, num_workers=1)))
"""


@pytest.mark.parametrize(("work", "found"), [(" * 2", "DEV516  images.py:10"), ("", "")])
def test_a_worker_may_not_use_tensors_of_its_parent(tmp_path: Path, work: str, found: str) -> None:
    (tmp_path / "images.py").write_text(OF_THE_PARENT.replace("WORK", work))
    ran = warm.run(["-m", "tensortrail", "trace", "--rehearse", "cuda", "images.py"], tmp_path)
    assert ran.returncode == 1
    assert "CUDA error: initialization error" in ran.stderr
    assert found in ran.stderr
    assert "in a forked process" in ran.stderr or "that was forked" in ran.stderr
    assert 'multiprocessing_context="spawn"' in ran.stderr


FORKS = """\
import multiprocessing
import torch

def child(answers):
    try:
        answers.send(str(torch.ones(1).cuda().device))
    except RuntimeError as error:
        answers.send(str(error))

if {used}:
    torch.ones(1, device="cuda")
mine, theirs = multiprocessing.Pipe()
forked = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
forked.start()
print(mine.recv() if mine.poll(60) else "no answer")
forked.join()
"""


@pytest.mark.parametrize(("used", "answer"), [
    (False, "cuda:0"),
    (True, "Cannot re-initialize CUDA in forked subprocess."),
])  # fmt: skip
def test_a_forked_child_may_not_use_what_its_parent_uses(
    tmp_path: Path, used: bool, answer: str
) -> None:
    """In a process of its own: one that has run many tests may have too much memory to fork."""
    (tmp_path / "forks.py").write_text(FORKS.format(used=used))
    ran = warm.run(["-m", "tensortrail", "trace", "--rehearse", "cuda:2", "forks.py"], tmp_path)
    assert ran.stdout.startswith(answer), ran.stdout + ran.stderr
