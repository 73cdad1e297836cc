"""After the recording torch and Python are as they were; sessions begin and end in any order."""

from __future__ import annotations

import gc
import importlib
import multiprocessing.process
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensortrail  # noqa: E402
from tensortrail.tracer.recording import session  # noqa: E402
from tensortrail.tracer.recording.begin import AlreadyRecording, begin  # noqa: E402
from tests.tracer.transparent.twice import recorded  # noqa: E402

for _name in ("torch._dynamo.eval_frame", "torch._dynamo.callback", "torch.distributed.checkpoint"):
    importlib.import_module(_name)  # what is hooked late is hooked at once
OURS = os.path.dirname(tensortrail.__file__) + os.sep


def attributes() -> dict[tuple[str, str], Any]:
    """Every attribute of every module, and of every class in torch and what we hook."""
    found: dict[tuple[str, str], Any] = {}
    for name, module in sorted(sys.modules.items()):
        namespace = getattr(module, "__dict__", None)
        if not isinstance(namespace, dict) or name.startswith(("tensortrail", "tests.")):
            continue
        for key, value in list(namespace.items()):
            found[name, key] = value
            if isinstance(value, type) and name.startswith(("torch", "multiproc", "threading")):
                for inner, method in list(vars(value).items()):
                    found[f"{name}.{key}", inner] = method
    return found


def state() -> list[Any]:
    handler = torch._dynamo.callback.callback_handler
    return [
        list(sys.meta_path),
        [type(mode) for mode in torch.overrides._get_current_function_mode_stack()],
        torch._C._len_torch_dispatch_stack(),
        list(handler.start_callbacks),
        list(handler.end_callbacks),
        sys.excepthook, threading.excepthook, sys.unraisablehook, sys.getprofile(),
        sys.gettrace(), threading.active_count(),
    ]  # fmt: skip


def busy() -> None:
    torch._dynamo.reset()
    net = torch.nn.Linear(2, 2)
    net.to(torch.float64)
    torch.compile(net, backend="eager")(torch.ones(1, 2, dtype=torch.float64))
    thread = threading.Thread(target=lambda: torch.ones(2).to("meta"))
    thread.start()
    thread.join()
    net(torch.ones(1, 2, dtype=torch.float64)).sum().backward()


def is_ours(value: Any) -> bool:
    return isinstance(value, FunctionType) and value.__code__.co_filename.startswith(OURS)


def test_everything_is_as_it_was(tmp_path: Path) -> None:
    busy()
    before, was = attributes(), state()
    with recorded(tmp_path):
        assert threading.Thread.start is not before["threading.Thread", "start"]
        assert is_ours(torch.save)
        busy()
    after, now = attributes(), state()
    changed = [key for key in before if key in after and before[key] is not after[key]]
    assert not [key for key in changed if is_ours(after[key])]
    assert not [key for key in after if is_ours(after[key])]
    hooked = [
        ("torch", "save"), ("torch", "load"), ("torch.nn.Module", "_apply"),
        ("torch.nn.Module", "state_dict"), ("torch", "from_numpy"), ("torch.Tensor", "set_"),
        ("torch.utils", "swap_tensors"), ("threading.Thread", "start"), ("os", "_exit"),
        ("torch.overrides", "has_torch_function"), ("torch.UntypedStorage", "resize_"),
        ("multiprocessing.process.BaseProcess", "start"),
        ("torch._dynamo.eval_frame", "set_eval_frame"),
    ]  # fmt: skip
    assert [key for key in hooked if before.get(key) is after.get(key)] == hooked
    assert now == was


def test_nothing_refers_to_a_recording_that_ended(tmp_path: Path) -> None:
    running = begin(tmp_path)
    busy()
    running.stop()
    recorder = weakref.ref(running.recorder)
    del running
    gc.collect()
    assert recorder() is None


def test_inherited_methods_are_inherited_again(tmp_path: Path) -> None:
    with recorded(tmp_path):
        pass
    assert "set_" not in vars(torch.Tensor) or torch.Tensor.set_ is vars(torch.Tensor)["set_"]
    assert multiprocessing.process.BaseProcess.start.__module__ == "multiprocessing.process"


def test_a_wrapper_that_somebody_wrapped_passes_through(tmp_path: Path) -> None:
    original = torch.save
    running = begin(tmp_path)
    inner = torch.save
    calls: list[Any] = []

    def outer(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return inner(*args, **kwargs)

    torch.save = outer
    try:
        running.stop()
        assert torch.save is outer
        torch.save(torch.ones(2), tmp_path / "x.pt")
        assert len(calls) == 1
        assert torch.equal(torch.load(tmp_path / "x.pt"), torch.ones(2))
    finally:
        torch.save = original


def test_a_second_recording_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    with recorded(tmp_path / "a") as running:
        with pytest.raises(AlreadyRecording, match="recorded already"):
            begin(tmp_path / "b")
        assert session.running() is running
        assert not (tmp_path / "b").exists()
    assert session.running() is None


def test_stopping_twice_is_harmless(tmp_path: Path) -> None:
    first = begin(tmp_path / "a")
    first.stop()
    first.stop()
    second = begin(tmp_path / "b")
    first.stop()
    assert session.running() is second
    second.stop()


def test_a_directory_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    was = state()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        begin(tmp_path / "file" / "run")
    assert session.running() is None
    assert state() == was


def test_stopped_in_another_thread(tmp_path: Path) -> None:
    running = begin(tmp_path)
    thread = threading.Thread(target=running.stop)
    thread.start()
    thread.join()
    assert torch.equal(torch.ones(2).to(torch.float64), torch.ones(2, dtype=torch.float64))
    begin(tmp_path / "b").stop()
    assert torch._C._len_torch_function_stack() <= 1


@pytest.fixture(autouse=True)
def _modes_are_taken_off() -> Iterator[None]:
    yield
    while torch._C._len_torch_function_stack():
        torch._C._pop_torch_function_stack()
