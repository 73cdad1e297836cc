"""What threads do is in the trail, however they were started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.rules.timeline import Did

from ..programs import recorded

pytestmark = pytest.mark.long


def test_threads_of_every_kind(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        import sys
        import traceback
        from concurrent.futures import ThreadPoolExecutor

        class Own(threading.Thread):
            def run(self):
                torch.zeros(2, 1)

        class Instance(threading.Thread):
            pass

        def main():
            torch.zeros(1)
            given = Instance(name="given")
            given.run = lambda: torch.zeros(5)
            threads = [
                threading.Thread(target=torch.zeros, args=(2,), name="target"),
                Own(name="own"),
                threading.Timer(0.01, torch.zeros, args=(4,)),
                given,
            ]
            threads[2].name = "timer"
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert "run" in vars(given) and "run" not in vars(threads[1])
            with ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
                list(pool.map(torch.zeros, [6, 7, 8]))
            ended = []
            threading.excepthook = lambda args: ended.extend(
                frame.f_code.co_name for frame, _ in traceback.walk_tb(args.exc_traceback)
            )
            failing = threading.Thread(target=lambda: torch.zeros(2).reshape(3))
            failing.start()
            failing.join()
            if sys.version_info >= (3, 11):  # before, a traceback is kept apart from its exception
                assert ended == ["_bootstrap_inner", "run", "<lambda>"], ended
        """,
    )
    shapes = {"Main": {(1,)}, "target": {(2,)}, "own": {(2, 1)}, "timer": {(4,)}, "given": {(5,)}}
    assert {thread: run.made(thread=thread) for thread in shapes} == shapes
    assert run.made(thread="pool") == {(6,), (7,), (8,)}
    started = {event.op for event in run.events(Did.WORKER)}
    assert started >= {"thread target", "thread own", "thread timer", "thread pool_0"}


def test_a_thread_of_a_library_points_at_the_line_that_started_it(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def main():
            thread = threading.Thread(target=torch.zeros, args=(3,))
            thread.start()  # here
            thread.join()
        """,
    )
    [made] = run.events(Did.CREATE)
    assert made.site is not None
    assert "# here" in run.timeline.line(made.site)


def test_threads_of_threads_and_generators_that_change_threads(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def steps():
            yield torch.zeros(1)
            yield torch.zeros(2)

        def outer(generator):
            next(generator)
            inner = threading.Thread(target=lambda: torch.zeros(3), name="inner")
            inner.start()
            inner.join()

        def main():
            generator = steps()
            next(generator)
            thread = threading.Thread(target=outer, args=(generator,), name="outer")
            thread.start()
            thread.join()
        """,
    )
    assert run.made(thread="Main") == {(1,)}
    assert run.made(thread="outer") == {(2,)}
    assert run.made(thread="inner") == {(3,)}


def test_a_thread_that_cannot_start_is_left_as_it_was(tmp_path: Path) -> None:
    recorded(
        tmp_path,
        """
        def main():
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()
            try:
                thread.start()
            except RuntimeError:
                assert "run" not in vars(thread)
                return
            raise SystemExit(3)
        """,
    )


def test_an_exception_in_a_thread_has_the_traceback_and_hook_it_has_without(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def fails():
            raise ValueError("in the thread")

        def main():
            threading.excepthook = lambda args: print(args.exc_type.__name__, args.thread.name)
            thread = threading.Thread(target=fails, name="failing")
            thread.start()
            thread.join()
        """,
    )
    assert run.output.split() == ["ValueError", "failing"]


def test_daemon_threads_alive_at_the_end(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def forever(went):
            for _ in range(20):
                torch.zeros(2).to(torch.float64)
            went.set()
            time.sleep(1000)

        def main():
            for _ in range(3):
                went = threading.Event()
                threading.Thread(target=forever, args=(went,), daemon=True).start()
                went.wait()
            print("end")
        """,
    )
    assert run.output == "end\n"
    assert len(run.events(Did.CREATE, thread="Thread-")) == 60
    assert run.timeline.parts[0].closed


def test_daemon_threads_when_nobody_stops_the_recording(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def forever(went):
            torch.zeros(2)
            went.set()
            while True:
                time.sleep(0)

        def main():
            for _ in range(3):
                went = threading.Event()
                threading.Thread(target=forever, args=(went,), daemon=True).start()
                went.wait()
            sys.exit(7)
        """,
        code=7,
    )
    assert run.made(thread="Thread-") == {(2,)}
    assert run.timeline.parts[0].closed


def test_hooks_functions_and_recomputation_in_autograd(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        from torch.utils.checkpoint import checkpoint

        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                torch.zeros(11)
                return grad * 2

        recomputed = []

        def block(x):
            recomputed.append(torch.zeros(20 + len(recomputed)))
            return x.sin().exp()

        def main():
            for backward in (
                lambda y: y.backward(),
                lambda y: torch.autograd.backward(y),
                lambda y: torch.autograd.grad(y, x),
            ):
                recomputed.clear()
                x = torch.ones(3, requires_grad=True)
                y = Twice.apply(x)
                y.register_hook(lambda grad: (torch.zeros(12), None)[1])
                backward(checkpoint(block, y, use_reentrant=False).sum())
                print(len(recomputed))
        """,
    )
    assert run.output.split() == ["2", "2", "2"]
    shapes = [e.storage.shape for e in run.events(Did.CREATE) if e.storage]
    assert shapes.count((11,)) == 3
    assert shapes.count((12,)) == 3
    assert shapes.count((20,)) == 3
    assert shapes.count((21,)) == 3


def test_reentrant_recomputation(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        from torch.utils.checkpoint import checkpoint

        def block(x):
            torch.zeros(20)
            return x.sin()

        def main():
            x = torch.ones(3, requires_grad=True)
            checkpoint(block, x, use_reentrant=True).sum().backward()
            print(x.grad.tolist() == x.detach().cos().tolist())
        """,
    )
    assert run.output == "True\n"
    assert [e.storage.shape for e in run.events(Did.CREATE) if e.storage].count((20,)) == 2


def test_threads_that_python_did_not_start_get_no_python_thread(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        import _thread

        def low(done):
            torch.zeros(2)
            running.recorder.of_thread.name
            done.release()

        def main():
            done = _thread.allocate_lock()
            done.acquire()
            _thread.start_new_thread(low, (done,))
            done.acquire()
            print(len(threading.enumerate()))
        """,
    )
    assert run.output == "1\n"


def test_events_are_in_the_order_they_happened(tmp_path: Path) -> None:
    run = recorded(
        tmp_path,
        """
        def work():
            for _ in range(2000):
                torch.zeros(1)

        def main():
            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        """,
    )
    times = [event.time for event in run.timeline.events()]
    assert len(times) >= 4 * 2000 * 2
    assert times == sorted(times)
    made = {event.storage: event.time for event in run.events(Did.CREATE)}
    assert all(made[event.storage] <= event.time for event in run.events(Did.FREE))
