"""OFF101 and OFF102 on runs of the genuine Torch-TensorRT, old and new, on a simulated GPU; its
engine is a stand-in."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Finding
from tensortrail.rules import all_rules
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import open_run
from tests.real.rehearsal.test_torch_tensorrt import REFIT, lines_of, rehearsed

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        sys.platform != "linux" or sys.version_info >= (3, 14),
        reason="Torch-TensorRT 2.8.0 has wheels for Linux and Python up to 3.13",
    ),
]
complete = pytest.mark.complete
WRITE = """\
engine.head.bias = torch.nn.Parameter(lm.head.bias.detach().clone())
engine(embeds)  # checks"""
RELOAD = """\
genuine = mutable_module()
engine.gm = None  # the stand-in of an engine cannot be pickled
genuine.save(engine, "engine.pt")
engine = genuine.load("engine.pt")  # reloads
lm = engine.original_model"""
OLD, NEW = "2.8.0", "2.14.0"


@dataclass(frozen=True)
class Run:
    script: str
    told: str
    found: tuple[Finding, ...]

    def only(self, code: str) -> Finding:
        (finding,) = (each for each in self.found if each.code == code)
        return finding


def run(release: str, then: str, folder: Path) -> Run:
    script, told = rehearsed(release, then, folder)
    (directory,) = (each for each in (folder / ".tensortrail").iterdir() if each.is_dir())
    rules = [all_rules()[code]() for code in ("OFF101", "OFF102")]
    judged = findings(open_run(directory), rules)
    assert not judged.problems
    return Run(script, told, judged.findings)


@pytest.mark.parametrize(
    ("release", "then", "line", "call"),
    [
        (OLD, "", "logits = engine(embeds)", "compile"),
        pytest.param(NEW, REFIT, "# refits", "refit_gm", marks=complete),
        pytest.param(NEW, WRITE, "# checks", "update_refit_condition", marks=complete),
        pytest.param(NEW, RELOAD, "# reloads", "load", marks=complete),
    ],
)
def test_with_a_stand_in_engine_the_call_that_moved_the_embedding_is_named(
    tmp_path: Path, release: str, then: str, line: str, call: str
) -> None:
    seen = run(release, then, tmp_path)
    caller = lines_of(seen.script, line)
    use = len(seen.script.splitlines()) - 1
    assert seen.script.splitlines()[use - 1] == "lm.get_input_embeddings()(ids)"

    moved = seen.only("OFF101")
    assert moved.site.line == caller
    assert (
        f"`lm.embed.weight` and 2 more (2.2 KB) went cuda:0 -> cpu inside `{call}()` "
        "although `offload_module_to_cpu` is False; it then met tensor 1x3 (`input`) on cuda:0 "
        f"at script.py:{use}"
    ) == moved.message
    edits = [edit.text for fix in moved.fixes for edit in fix.edits]
    assert edits == ([] if call == "load" else ['\nlm.to("cuda:0")'])
    library = moved.trail[-1].site
    assert library.file.endswith("_MutableTorchTensorRTModule.py")
    assert "deallocate_module(" in library.source

    used = seen.only("OFF102")
    assert used.site.line == use
    assert f"on cpu since `{call}()` at script.py:{caller}" in used.message
    for each in (moved, used):
        (setting,) = each.settings
        assert (setting.call, setting.name, setting.value) == ("to", "device", '"cuda:0"')
        assert f"`{call}()` does not ask `offload_module_to_cpu`" in setting.why

    assert f"moved cuda:0 -> cpu at script.py:{caller}" in seen.told
    assert f"left there by `{call}()`, although `offload_module_to_cpu` is False" in seen.told


@complete
def test_compile_of_the_new_release_with_a_stand_in_engine_has_no_findings(tmp_path: Path) -> None:
    assert not run(NEW, "", tmp_path).found


@complete
def test_in_the_old_release_with_a_stand_in_engine_a_check_moves_it_once_more(
    tmp_path: Path,
) -> None:
    """The embedding lay on the CPU already: the check took it to the GPU and back."""
    seen = run(OLD, WRITE, tmp_path)
    assert "since `update_refit_condition()`" in seen.only("OFF102").message
