"""What child processes do is in the trail, however they were started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tensortrail.rules.timeline import Did

from ..programs import recorded

pytestmark = pytest.mark.long

SLOW = ("spawn", "forkserver")
"""Their children import torch anew. `test_what_ends_a_child` is run by default."""
METHODS = pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(each, marks=pytest.mark.complete) for each in SLOW)]
)


@METHODS
def test_processes_of_every_kind(tmp_path: Path, method: str) -> None:
    run = recorded(
        tmp_path,
        f"""
        import multiprocessing

        class Own(multiprocessing.get_context("{method}").Process):
            def run(self):
                torch.zeros(3)

        def work(size):
            torch.zeros(size)

        def main():
            context = multiprocessing.get_context("{method}")
            multiprocessing.set_start_method("{method}")
            children = [
                context.Process(target=work, args=(2,), name="context"),
                Own(name="own"),
                multiprocessing.Process(target=work, args=(4,), name="default"),
            ]
            for child in children:
                child.start()
            for child in children:
                child.join()
                assert child.exitcode == 0, child
                assert "run" not in vars(child)
        """,
    )
    found = {name: run.made(process=name) for name in ("context", "own", "default")}
    assert found == {"context": {(2,)}, "own": {(3,)}, "default": {(4,)}}
    assert len(run.processes) == 4
    assert all(process.part.closed for process in run.timeline.processes)
    assert len({e.process for e in run.events(Did.WORKER)} - {"main"}) == 3


@METHODS
def test_process_pools(tmp_path: Path, method: str) -> None:
    run = recorded(
        tmp_path,
        f"""
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        def work(size):
            torch.zeros(size).to(torch.float64)
            return size

        def main():
            context = multiprocessing.get_context("{method}")
            with ProcessPoolExecutor(2, mp_context=context) as pool:
                print(sorted(pool.map(work, [5, 6, 7])))
            with context.Pool(1) as pool:
                print(pool.map(work, [8, 9]))
                pool.close()
                pool.join()
        """,
    )
    assert run.output.splitlines() == ["[5, 6, 7]", "[8, 9]"]
    assert run.made(process="main, ") >= {(5,), (6,), (7,), (8,), (9,)}
    assert not run.made(process="Main")


@METHODS
def test_workers_of_data_loaders(tmp_path: Path, method: str) -> None:
    run = recorded(
        tmp_path,
        f"""
        from torch.utils.data import DataLoader, Dataset

        class Numbers(Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, index):
                return torch.zeros(30 + index)

        def main():
            for persistent in (False, True):
                loader = DataLoader(
                    Numbers(), batch_size=1, num_workers=2, persistent_workers=persistent,
                    multiprocessing_context="{method}",
                )
                for _ in range(2):
                    print(len(list(loader)))
        """,
    )
    assert run.output.split() == ["4"] * 4
    made = [e for e in run.events(Did.CREATE) if e.storage and e.storage.shape[0:1] >= (30,)]
    assert {e.process for e in made} <= set(run.processes) - {"main"}
    assert len(made) == 4 * 4
    assert len({e.process for e in made}) == 2 + 2 + 2


@pytest.mark.complete
def test_spawned_by_torch(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def work(rank, shared):
            shared[rank] = torch.zeros(40 + rank).numel()

        def main():
            shared = torch.zeros(2).share_memory_()
            torch.multiprocessing.spawn(work, (shared,), nprocs=2)
            print(shared.tolist())
        """,
    )
    assert run.output == "[40.0, 41.0]\n"
    assert run.made() >= {(40,), (41,)}


def test_what_ends_a_child(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def work(rank):
            state = {f"module.{k}": v for k, v in torch.nn.Linear(2, 2).state_dict().items()}
            state["weight"]

        def main():
            try:
                torch.multiprocessing.spawn(work, nprocs=1)
            except torch.multiprocessing.ProcessRaisedException as error:
                print("spawned_process.py" in str(error), "KeyError: 'weight'" in str(error))
        """,
    )
    assert run.output == "False True\n"
    (lacked,) = [each for each in run.events(Did.HOOK) if each.op == "KeyError"]
    assert lacked.process != "main"
    assert lacked.site
    assert lacked.site.function == "work"


@pytest.mark.complete
def test_a_child_that_fails_fails_as_without(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        import multiprocessing

        def fails():
            torch.zeros(2)
            raise SystemExit(9)

        def main():
            for method in ("fork", "spawn"):
                child = multiprocessing.get_context(method).Process(target=fails)
                child.start()
                child.join()
                print(child.exitcode)
        """,
    )
    assert run.output.split() == ["9", "9"]
    assert [e.storage.shape for e in run.events(Did.CREATE) if e.storage] == [(2,), (2,)]
    assert all(process.part.closed for process in run.timeline.processes)


def test_forks_that_leave_in_every_way(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        import signal

        def child(leave, size):
            if (pid := os.fork()) == 0:
                torch.zeros(size)
                leave()
            return os.waitpid(pid, 0)[1]

        def main():
            from os import _exit
            print(child(lambda: os._exit(3), 3) >> 8)
            print(child(lambda: sys.exit(4), 4) >> 8)
            print(child(lambda: _exit(5), 5) >> 8)
            print(child(lambda: (_ for _ in ()).throw(KeyError("x")), 6) >> 8)
        """,
    )
    assert run.output.split() == ["3", "4", "5", "1"]
    assert {(3,), (4,), (5,), (6,)} == run.made(process="fork")
    assert all(process.part.closed for process in run.timeline.processes)


def test_nested_forks(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def main():
            for depth in range(3):
                if (pid := os.fork()) != 0:
                    os.waitpid(pid, 0)
                    break
                torch.zeros(10 + depth)
            if depth or os.getpid() != running.header["pid"]:
                os._exit(0)
        """,
    )
    by_process = [run.made(process=label) for label in run.processes if "fork" in label]
    assert sorted(map(sorted, by_process)) == [[(10,)], [(11,)], [(12,)]]


def test_a_tensor_of_the_parent_has_its_history_in_the_child(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def main():
            model = torch.nn.Linear(3, 3)
            model.to(torch.float64)
            late = torch.zeros(5)
            if (pid := os.fork()) == 0:
                model.weight.data.copy_(torch.ones(3, 3))
                late.to("meta")
                os._exit(0)
            late.to("meta")
            os.waitpid(pid, 0)
        """,
    )
    child = next(label for label in run.processes if "fork" in label)
    [moved] = run.events(Did.MOVE, process=child)
    assert moved.other is not None
    history = run.timeline.history(moved.storage) if moved.storage else []
    assert [(event.did, event.process) for event in history] == [
        (Did.CREATE, "main"),
        (Did.MOVE, child),
        (Did.FREE, child),
    ]
    [copied] = run.events(Did.COPY, process=child)
    assert copied.storage is not None
    assert run.timeline.name(copied.storage) == "Linear.weight"
    numbers = {event.storage.number for event in run.events(process=child) if event.storage}
    assert moved.other.number < min(numbers - {copied.storage.number})


def test_the_child_goes_on_in_its_phase(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def main():
            with running.recorder.phases.within("checkpoint"):
                if (pid := os.fork()) == 0:
                    torch.zeros(3)
                    os._exit(0)
                os.waitpid(pid, 0)
            torch.zeros(4)
        """,
    )
    phases = {e.storage.shape: e.phase for e in run.events(Did.CREATE) if e.storage}
    assert phases == {(3,): "checkpoint", (4,): "run"}
    kinds = [event.did for event in run.events(process="fork")]
    assert kinds == [Did.WORKER, Did.PHASE, Did.CREATE, Did.FREE]


@pytest.mark.complete
def test_forks_while_other_threads_write(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def write(stop):
            while not stop.is_set():
                torch.zeros(2).to(torch.float64)
                running.recorder.writer.flush()

        def main():
            stop = threading.Event()
            threads = [threading.Thread(target=write, args=(stop,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for _ in range(60):
                if (pid := os.fork()) == 0:
                    torch.zeros(7)
                    threading.Thread(target=torch.zeros, args=(8,)).start()
                    running.recorder.writer.flush()
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
            stop.set()
        """,
        timeout=60,
    )
    assert len(run.processes) == 61
    for label in run.processes[1:]:
        assert (7,) in run.made(process=label)


def test_forks_while_another_thread_compiles(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def main():
            torch.zeros(1)
            with running._patches._lock:  # as the thread that compiles holds it for a moment
                if (pid := os.fork()) == 0:
                    with running._patches.paused():
                        torch.zeros(7)
                    os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        """,
        timeout=30,
    )
    assert run.made(process="fork") == {(7,)}


def test_children_without_torch_do_not_get_it(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "import sys\ndef work():\n    print('torch' in sys.modules)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys, plain\n"
        "if __name__ == '__main__':\n"
        "    from tensortrail.tracer.recording.begin import begin\n"
        "    running = begin(sys.argv[1])\n"
        "    child = multiprocessing.get_context('spawn').Process(target=plain.work)\n"
        "    child.start()\n"
        "    child.join()\n"
        "    running.stop()\n"
    )
    command = [sys.executable, str(program), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


@pytest.mark.complete
def test_children_that_import_torch_late_are_recorded(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("def work():\n    import torch\n    torch.zeros(3)\n")
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys, late\n"
        "if __name__ == '__main__':\n"
        "    from tensortrail.tracer.recording.begin import begin\n"
        "    running = begin(sys.argv[1])\n"
        "    child = multiprocessing.get_context('spawn').Process(target=late.work)\n"
        "    child.start()\n"
        "    child.join()\n"
        "    print(child.exitcode)\n"
        "    running.stop()\n"
    )
    command = [sys.executable, str(program), str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0\n"
    from tensortrail.tracer.reading.timeline import open_run

    created = open_run(tmp_path / "run").events(Did.CREATE)
    assert [event.storage.shape for event in created if event.storage] == [(3,)]


def test_other_programs_are_not_followed(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        import subprocess

        def main():
            code = "import torch; torch.zeros(3); print(torch._C._len_torch_function_stack())"
            print(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
        """,
    )
    assert run.output == "b'0\\n'\n"
    assert run.processes == ["main"]
