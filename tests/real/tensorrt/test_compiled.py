"""The genuine export and `dynamo.compile` on a simulated GPU. No block is large enough for an
engine, so that nothing but the empty module `tensorrt` is a stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.rules import all_rules
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import open_run
from tests.real.rehearsal.test_torch_tensorrt import lines_of, printed

pytestmark = [pytest.mark.real, pytest.mark.complete]
SCRIPT = """\
from stand_in_engine import stub_tensorrt
stub_tensorrt()
import torch, torch_tensorrt
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval().cuda()
x = torch.randn(2, 4, device="cuda")
expected = model(x)
program = torch.export.export(model, (x,))
compiled = torch_tensorrt.dynamo.compile(  # compiles
    program, arg_inputs=(x,), min_block_size=1_000_000, offload_module_to_cpu={offload}
)
print("the model is on", model[0].weight.device)
print("the same", torch.equal(model(x), expected), torch.equal(compiled(x), expected))
"""


@pytest.mark.parametrize("version", ["2.8.0", "2.14.0"])
def test_a_model_that_stays_is_not_spoken_of(tmp_path: Path, version: str) -> None:
    told = printed(version, SCRIPT.format(offload=False), tmp_path)
    assert "the model is on cuda:0" in told
    assert "the same True True" in told
    (run,) = (each for each in (tmp_path / ".tensortrail").iterdir() if each.is_dir())
    judged = findings(open_run(run), [rule() for rule in all_rules().values()])
    assert not judged.findings
    assert not judged.problems


@pytest.mark.parametrize("version", ["2.8.0", "2.14.0"])
def test_a_model_that_was_to_be_offloaded_is_missed_where_it_is_used(
    tmp_path: Path, version: str
) -> None:
    script = SCRIPT.format(offload=True)
    told = printed(version, script, tmp_path)
    assert "the model is on cpu" in told
    assert "left there by `torch_tensorrt.dynamo.compile()`" in told
    (run,) = (each for each in (tmp_path / ".tensortrail").iterdir() if each.is_dir())
    judged = findings(open_run(run), [rule() for rule in all_rules().values()])
    (finding,) = judged.findings
    assert finding.code == "OFF102"
    assert finding.site.line == lines_of(script, "the same")
    began = lines_of(script, "# compiles")
    assert f"since `torch_tensorrt.dynamo.compile()` at script.py:{began}" in finding.message
    (setting, *_) = finding.settings
    assert (setting.name, setting.value) == ("offload_module_to_cpu", "False")
