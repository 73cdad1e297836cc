"""Programs over one process on gloo, recorded here, and what the default rules say of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from tensortrail.findings import Finding
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import RunTimeline
from tests.rules.recorded import record

START = """\
import torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
torch.manual_seed(0)
"""


@dataclass(frozen=True)
class Told:
    findings: tuple[Finding, ...]
    timeline: RunTimeline
    error: BaseException | None

    @property
    def codes(self) -> dict[str, str]:
        """Code -> the source of its line."""
        return {each.code: each.site.source.strip() for each in self.findings}

    def of(self, code: str) -> Finding:
        (found,) = (each for each in self.findings if each.code == code)
        return found


def told(folder: Path, source: str, rehearse: str = "") -> Told:
    try:
        _, timeline, error = record(folder, START + source, rehearse)
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    judged = findings(timeline)
    assert judged.problems == ()
    return Told(judged.findings, timeline, error)
