"""Asynchronous distributed checkpoints: who asks, what is staged, the thread or process that
writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.rules.timeline import Did
from tests.parts import first_of

from ..programs import Recorded, recorded

SAVE = """
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

    def main():
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="{port}", RANK="0", WORLD_SIZE="1")
        dist.init_process_group("gloo", rank=0, world_size=1)
        model = torch.nn.Linear(8, 8)
        state = model.state_dict()
        {body}
        dist.destroy_process_group()
"""


def saved(folder: Path, body: str, port: int) -> Recorded:
    return recorded(folder, SAVE.format(port=port, body=body))


@pytest.fixture
def port() -> int:
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.mark.parametrize("kind", first_of(["THREAD", "PROCESS"]))
def test_saves_in_the_background(tmp_path: Path, port: int, kind: str) -> None:
    body = f"""future = dcp.async_save(
            state, checkpoint_id="saved", async_checkpointer_type=AsyncCheckpointerType.{kind})
        future.result()
        loaded = {{key: torch.zeros_like(value) for key, value in state.items()}}
        dcp.load(loaded, checkpoint_id="saved")
        print(all(torch.equal(loaded[key], state[key]) for key in state))"""
    run = saved(tmp_path, body, port)
    assert run.output == "True\n"
    saves = [event for event in run.events(Did.SAVE) if event.process == "main" and event.storage]
    assert {event.facts["key"] for event in saves} >= {"weight", "bias"}
    assert {event.phase for event in saves} == {"checkpoint"}
    assert all(event.site and event.site.file == run.file for event in saves)
    staged = run.events(Did.STAGE)
    assert {event.facts["key"] for event in staged} == {"weight", "bias"}
    assert all(event.site and event.site.file == run.file for event in staged)
    started = {event.op.split()[0] for event in run.events(Did.WORKER)}
    assert "thread" in started
    loads = {event.facts.get("key") for event in run.events(Did.LOAD)}
    assert loads >= {"weight", "bias"}
    assert not run.events(Did.PENDING)
    if kind == "PROCESS":
        child = next(label for label in run.processes if "," in label)
        there = [event for event in run.events(Did.SAVE, process=child) if event.op == "dcp.save"]
        assert {event.facts.get("key") for event in there} == {"weight", "bias", None}
        assert all(event.site and event.site.file == run.file for event in there)
        assert {event.phase for event in there} == {"checkpoint"}
    else:
        threads = {event.thread for event in run.events(Did.SAVE)}
        assert len(threads) == 2


def test_a_save_that_nobody_waits_for_is_told(tmp_path: Path, port: int) -> None:
    body = """first = dcp.async_save(state, checkpoint_id="one")
        second = dcp.async_save(state, checkpoint_id="two")
        if os.fork() == 0:
            os._exit(0)
        os.wait()
        first.result(), second.result()"""
    run = saved(tmp_path, body, port)
    assert {event.facts["path"] for event in run.events(Did.PENDING)} <= {str(tmp_path / "one")}
    assert not run.events(Did.PENDING, process="fork")


def test_pools_of_the_checkpoint_writer(tmp_path: Path, port: int) -> None:
    body = """writer = dcp.FileSystemWriter("saved", thread_count=3)
        dcp.async_save(state, storage_writer=writer).result()"""
    run = saved(tmp_path, body, port)
    keys = {event.facts.get("key") for event in run.events(Did.SAVE)}
    assert keys >= {"weight", "bias"}
