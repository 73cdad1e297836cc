"""SHD431, `collective-on-some-ranks`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


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
