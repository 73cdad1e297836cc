"""An exception that ends a thread, a task or a child process is told at the end of the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import warm

pytest.importorskip("torch")

pytestmark = pytest.mark.long

BOTH = """
import threading, torch
def fails():
    return torch.ones(2, 4) @ torch.ones(4, 2, device="cuda")
def reads():
    torch.load("prog.py")
"""
THREAD = """
for target in (fails, reads):
    thread = threading.Thread(target=target, name=target.__name__)
    thread.start(); thread.join()
"""
TASK = """
import asyncio
async def later(): fails()
async def main():
    task = asyncio.create_task(later(), name="later"); del task
    await asyncio.sleep(0.1)
asyncio.run(main())
"""
PROCESS = """
import multiprocessing as mp
if __name__ == "__main__":
    child = mp.get_context("{method}").Process(target=fails, name="child")
    child.start(); child.join()
"""


def traced(folder: Path, source: str) -> tuple[int, str]:
    (folder / "prog.py").write_text(BOTH + source)
    options = ("--rehearse", "cuda", "--directory", "run")
    done = warm.run(["-m", "tensortrail", "trace", *options, "prog.py"], folder)
    return done.returncode, done.stderr.partition("tensortrail: ")[2]


def test_a_thread_that_ended_while_the_program_went_on(tmp_path: Path) -> None:
    code, told = traced(tmp_path, THREAD)
    assert code == 0
    assert "error DEV502  prog.py:4  `Tensor.matmul` raises" in told
    assert "error RUN101  prog.py:6  UnpicklingError, which ended thread reads: The file" in told
    assert "  thread fails ended with RuntimeError at prog.py:4, and the program went on" in told
    assert "  thread reads ended with UnpicklingError at prog.py:6, and" in told
    wide = {**os.environ, "COLUMNS": "160"}
    report = warm.run(["-m", "tensortrail", "report", "run"], tmp_path, env=wide).stdout
    ended = "thread reads ended with UnpicklingError at prog.py:6, and the program went on"
    assert ended in report
    warm.run(["-m", "tensortrail", "report", "run", "--format", "html"], tmp_path)
    assert ended in (tmp_path / "run" / "report.html").read_text()


TWICE = """
def twice():
    loss = torch.ones(2, requires_grad=True).exp().sum()
    loss.backward()
    loss.backward()
thread = threading.Thread(target=twice, name="twice")
thread.start(); thread.join()
"""


def test_what_ended_a_thread_was_not_handled_in_it(tmp_path: Path) -> None:
    _, told = traced(tmp_path, TWICE)
    assert "error STO217  prog.py:11" in told
    assert "  thread twice ended with RuntimeError at prog.py:11" in told


def test_a_thread_of_a_program_that_failed_later(tmp_path: Path) -> None:
    code, told = traced(tmp_path, f"{THREAD}\nraise SystemExit(3)")
    assert code == 3
    assert "  thread fails ended with RuntimeError at prog.py:4\n" in told


def test_a_task_that_nobody_asked(tmp_path: Path) -> None:
    code, told = traced(tmp_path, TASK)
    assert code == 0
    assert "error DEV502  prog.py:4" in told
    assert "  task later ended with RuntimeError at prog.py:4, and the program went on" in told


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process(tmp_path: Path, method: str) -> None:
    code, told = traced(tmp_path, PROCESS.format(method=method))
    assert code == 0
    assert "error DEV502  prog.py:4" in told
    assert "  process child ended with RuntimeError at prog.py:4, and the program went on" in told


POOL = """
from concurrent.futures import ThreadPoolExecutor
def handled(future):
    try:
        future.result()
    except RuntimeError:
        pass
with ThreadPoolExecutor(1) as pool:
    {submitted}
"""


@pytest.mark.parametrize("submitted", ["pool.submit(fails)", "kept = pool.submit(fails)"])
def test_a_task_of_a_pool_whose_result_nobody_read(tmp_path: Path, submitted: str) -> None:
    code, told = traced(tmp_path, POOL.format(submitted=submitted))
    assert code == 0
    assert "error DEV502  prog.py:4" in told
    assert "a task whose result nobody read ended with RuntimeError at prog.py:4, and" in told


def test_a_task_of_a_pool_whose_failure_was_handled(tmp_path: Path) -> None:
    code, told = traced(tmp_path, POOL.format(submitted="handled(pool.submit(fails))"))
    assert code == 0
    assert "nobody read" not in told


WORKERS = """
class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.ones(3) @ torch.ones(4)
for batch in torch.utils.data.DataLoader(Items(), num_workers=2):
    pass
"""


def test_workers_that_end_with_the_program_are_no_problem(tmp_path: Path) -> None:
    code, told = traced(tmp_path, WORKERS)
    assert code == 1
    assert "not ended" not in told
    assert "abruptly" not in told
    report = warm.run(["-m", "tensortrail", "report", "run"], tmp_path).stdout
    assert "problem" not in report
    assert "without a recorded end" not in report
