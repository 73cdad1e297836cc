"""SHD431, `collective-on-some-ranks`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tensortrail.findings import Severity, Site
from tensortrail.rules import Did, Event, all_rules
from tests.rules.judged import lines, severity


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("args.local_rank != -1", None), ("args.local_rank != 0", Severity.ERROR)],
)
def test_whether_there_are_ranks_is_not_asked_of_some(
    condition: str, expected: Severity | None
) -> None:
    source = f"""
    import torch.distributed as dist

    def ready(args):
        if {condition}:
            dist.barrier()
    """
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(("sender", "expected"), [("0", None), ("1", Severity.ERROR)])
def test_who_receives_does_not_send(sender: str, expected: Severity | None) -> None:
    source = f"""
    import torch.distributed as dist

    def search(study, settings, rank):
        if rank == 0:
            study.optimize()
        else:
            dist.broadcast_object_list(settings, src={sender})
    """
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(
    ("waited", "expected"),
    [("dist.broadcast(word, src=0)", None), ("dist.barrier()", Severity.ERROR)],
)
def test_the_other_ranks_answer_in_a_method(waited: str, expected: Severity | None) -> None:
    source = f"""
    import torch.distributed as dist

    class Served:
        def answer(self, word):
            while True:
                {waited}

    def main(word):
        model = Served()
        if dist.get_rank() == 0:
            dist.broadcast(word, src=0)
        elif dist.get_rank() > 0:
            model.answer(word)
    """
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(("asked", "unanswered"), [("rank == 0", []), ("rank == 1", [9, 17])])
def test_the_loop_of_the_other_ranks_is_elsewhere(asked: str, unanswered: list[int]) -> None:
    source = f"""
    import torch.distributed as dist

    class Server:
        def issue(self, batches):
            if self.rank != 0:
                return
            for batch in batches:
                dist.broadcast_object_list([batch], src=0)

    def main(server, rank):
        if {asked}:
            server.issue(server.batches)
        else:
            while True:
                said = [None]
                dist.broadcast_object_list(said, src=0)
    """
    assert [line for line, _ in lines("SHD431", source)] == unanswered


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("not self.fsdp", Severity.NOTE), ("self.fsdp", Severity.WARNING), ("True", Severity.WARNING)],
)
def test_where_a_file_says_that_nothing_is_sharded(asked: str, expected: Severity) -> None:
    source = f"""
from accelerate import Accelerator

class Trainer:
    def __init__(self, accelerator: Accelerator, fsdp):
        self.accelerator, self.fsdp = accelerator, fsdp

    def keep(self, folder):
        if self.accelerator.is_main_process:
            if {asked}:
                self.accelerator.save_state(folder)
"""
    assert severity("SHD431", source) is expected


@pytest.mark.parametrize(
    ("use", "expected"), [("", Severity.NOTE), ("print(args.deepspeed)", Severity.WARNING)]
)
def test_a_field_alone_does_not_say_that_models_are_sharded(use: str, expected: Severity) -> None:
    source = f"""
from dataclasses import dataclass
from accelerate import Accelerator

@dataclass
class Arguments:
    deepspeed: bool = False

def keep(accelerator: Accelerator, args: Arguments, folder):
    {use}
    if accelerator.is_main_process:
        accelerator.save_state(folder)
"""
    assert severity("SHD431", source) is expected


class Run:
    """Two ranks that have made two collectives each."""

    def __init__(self, *second: tuple[str, str, int, dict[str, Any]]) -> None:
        first = [_made(rank, "broadcast", 9, 1, {}) for rank in ("rank 0", "rank 1")]
        self._events = [*first, *(_made(*each[:3], 2, each[3]) for each in second)]

    def events(self, *kinds: Did) -> list[Event]:
        return [each for each in self._events if each.did in kinds]

    def cut_short(self) -> list[Event]:
        return [each for each in self._events if each.facts.get("inside")]

    def steps(self, _: object) -> tuple[()]:
        return ()


def _made(rank: str, op: str, line: int, number: int, facts: dict[str, Any]) -> Event:
    site = Site(str(Path("train.py")), line)
    return Event(
        Did.COLLECTIVE, 0.0, f"{rank}, 17", "main", "run", site, op=op,
        facts={"number": number, **facts},
    )  # fmt: skip


def _said(run: Run) -> list[str]:
    return [each.message for each in all_rules()["SHD431"]().watch(run)]  # type: ignore[arg-type]


def test_ranks_in_different_collectives_when_one_fails() -> None:
    failed: dict[str, Any] = {"failed": True}
    run = Run(("rank 0", "barrier", 14, failed), ("rank 1", "all_reduce", 15, failed))
    assert _said(run) == [
        "`barrier`, the 2nd collective of rank 0, failed: the 2nd of rank 1 was `all_reduce` at "
        "train.py:15"
    ]
    assert not _said(Run(("rank 0", "barrier", 14, {}), ("rank 1", "all_reduce", 15, {})))


def test_tensors_of_other_sizes_in_one_collective() -> None:
    sizes = ["float32 5x4"], ["float32 3x4"]
    one = ("rank 0", "all_gather", 11, {"sizes": sizes[0], "failed": True})
    run = Run(one, ("rank 1", "all_gather", 11, {"sizes": sizes[1]}))
    assert _said(run) == ["`all_gather` is given float32 5x4 in rank 0 and float32 3x4 in rank 1"]
    assert not _said(Run(one, ("rank 1", "all_gather", 11, {"sizes": sizes[0]})))


def test_ranks_that_ended_in_one_collective_with_other_sizes() -> None:
    inside: dict[str, Any] = {"inside": True}
    run = Run(
        ("rank 0", "all_gather", 11, {"sizes": ["float32 5x4"], **inside}),
        ("rank 1", "all_gather", 11, {"sizes": ["float32 3x4"], **inside}),
    )
    assert _said(run) == ["`all_gather` is given float32 5x4 in rank 0 and float32 3x4 in rank 1"]


@pytest.mark.parametrize(
    ("own", "told"),
    [
        (2, " after 2 steps, and rank 0 is in its 3rd: it has more batches"),
        (1, " after 2 steps"),
    ],
)
def test_a_rank_that_waits_for_one_that_has_left(own: int, told: str) -> None:
    run = Run(("rank 1", "destroy_process_group", 21, {"steps": 2}))
    waiting = dataclasses.replace(
        _made("rank 0", "RuntimeError", 18, 0, {"left alone": True, "steps": own}), did=Did.HOOK
    )
    run._events.append(waiting)
    assert _said(run) == [
        f"rank 0 waits here for rank 1, which left the group at train.py:21{told}"
    ]
