"""Programs with genuine quantized tensors of a release, recorded in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

from tensortrail.findings import Finding
from tensortrail.rules import all_rules
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import open_run
from tests import warm
from tests.real.releases import with_release

OLD, NEW = "2.15.0", "2.16.0"
ROOT = Path(__file__).parents[3]
CODES = ("STO201", "STO202", "STO203", "NEW301", "NEW303", "NEW304", "XFR602", "XFR604")
"""What may be said of a wrapper that is staged, sharded, moved or compared."""
PROGRAM = """\
import warnings
warnings.simplefilter("ignore")
from tests.real.transformer_engine import makers
import torch
import torch.distributed.checkpoint as dcp
model = torch.nn.Module()
model.weight = torch.nn.Parameter(makers.{maker}(), requires_grad=False)
torch.set_grad_enabled(False)
{then}
"""


@dataclass(frozen=True)
class Seen:
    lines: tuple[str, ...]
    told: str
    found: tuple[Finding, ...]

    @property
    def codes(self) -> set[str]:
        return {each.code for each in self.found}

    def only(self, code: str, line: str) -> Finding:
        """The finding of that rule, which is at that line of the program."""
        (finding,) = (each for each in self.found if each.code == code)
        assert self.lines[finding.site.line - 1].strip() == line
        return finding


def recorded(release: str, maker: str, then: str, folder: Path) -> Seen:
    program = folder / "program.py"
    program.write_text(PROGRAM.format(maker=maker, then=then), encoding="utf-8")
    run = folder / "run"
    command = ["-m", "tensortrail", "trace", "--quiet", "--directory", str(run), str(program)]
    done = warm.run(command, folder, env=environment(release))
    told = done.stdout + done.stderr
    judged = findings(open_run(run), [all_rules()[code]() for code in CODES])
    assert not judged.problems, judged.problems
    assert "makers." not in told or done.returncode, indent(told, "  ")
    return Seen(tuple(program.read_text().splitlines()), told, judged.findings)


def environment(release: str) -> dict[str, str]:
    """With our tests in reach: the stand-ins and the makers are there."""
    found = with_release(f"transformer-engine {release}")
    return {**found, "PYTHONPATH": f"{found['PYTHONPATH']}:{ROOT}"}
