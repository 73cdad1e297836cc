"""Code that takes an offloaded model for one that is not: a program's own, and transformers'."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

from tensortrail.findings import Finding, Severity  # noqa: E402
from tensortrail.tracer.reading.timeline import open_run  # noqa: E402
from tests.real.hf.models import program  # noqa: E402
from tests.real.releases import with_release  # noqa: E402
from tests.rules.recorded import found, record, watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
EXPORT = """\
from accelerate.utils.modeling import get_state_dict_offloaded_model
def export(model):
    places = model.hf_device_map.values()
    is_offloaded = {guard}
    weights = get_state_dict_offloaded_model(model) if is_offloaded else model.state_dict()
    return {{name: weight.numpy() for name, weight in weights.items()}}  # flagged
exported = export(model)
"""
SEVERAL = "len(set(model.hf_device_map.values())) > 1"
ON_CPU = '"cpu" in model.hf_device_map.values()'
ON_DISK = '"disk" in places'
TWO = '{"model": "disk", "lm_head": "cpu"}'


@pytest.mark.parametrize(
    "guard",
    [
        SEVERAL,
        ON_CPU,
        pytest.param(f"{SEVERAL} and ('cpu' in places or 1)", marks=pytest.mark.complete),
    ],
)
def test_a_test_that_misses_the_disk_is_named(tmp_path: Path, guard: str) -> None:
    seen = watched(tmp_path, program("Llama", EXPORT.format(guard=guard)), "OFF103")
    assert seen.only.severity is Severity.ERROR
    test = guard.partition(" and ")[0].replace('"', "'")
    assert f"`{test}` in `export` takes a model whose weights are all on disk" in seen.only.message
    assert seen.only.trail[-1].message == "decided here"
    assert guard in seen.only.trail[-1].site.source
    codes = {each.code for each in found(seen.timeline) if each.severity is Severity.ERROR}
    assert codes == {"OFF103"}


@pytest.mark.parametrize(
    ("guard", "device_map"),
    [
        (f"{SEVERAL} or {ON_DISK}", '{"": "disk"}'),
        (SEVERAL, TWO),
        pytest.param(f"{ON_CPU} or {ON_DISK}", '{"": "disk"}', marks=pytest.mark.complete),
        pytest.param(ON_CPU, TWO, marks=pytest.mark.complete),
    ],
)
def test_tests_that_are_right_about_the_model(tmp_path: Path, guard: str, device_map: str) -> None:
    source = program("Llama", EXPORT.format(guard=guard), device_map).replace("  # flagged", "")
    assert not watched(tmp_path, source.replace("numpy()", "cpu()"), "OFF103").found


def test_a_weight_used_elsewhere_is_not_the_guard_s_fault(tmp_path: Path) -> None:
    then = EXPORT.format(guard=f"{SEVERAL} or {ON_DISK}").replace("  # flagged", "")
    _, timeline, error = record(tmp_path, program("Llama", then + "model.lm_head.weight.tolist()"))
    assert error is not None
    assert [each.code for each in found(timeline, "OFF103", "OFF105")] == ["OFF105"]


SAVED = 'model.save_pretrained(folder + "/out")\n'


@pytest.mark.complete
@pytest.mark.parametrize("version", ["5.13.1", "5.14.1"])
def test_releases_of_transformers_that_missed_the_disk(tmp_path: Path, version: str) -> None:
    source = program("Llama", SAVED)
    codes = _recorded(tmp_path, source, version)
    (finding,) = [each for each in codes if each.code == "OFF103"]
    assert "`len(set(self.hf_device_map.values())) > 1` in `PreTrainedModel.save_pretrained`" in (
        finding.message
    )
    (setting,) = finding.settings
    assert ast.literal_eval(setting.value) == {"model": "disk", "lm_head": "cpu"}
    (tmp_path / "again").mkdir()
    mended = program("Llama", SAVED, setting.value)
    assert not [each for each in _recorded(tmp_path / "again", mended, version, 0) if (
        each.severity is Severity.ERROR
    )]  # fmt: skip


def _recorded(folder: Path, source: str, version: str, code: int = 1) -> tuple[Finding, ...]:
    script = folder / "program.py"
    script.write_text(f"folder = {str(folder)!r}\n{source}", encoding="utf-8")
    run = folder / "run"
    command = [sys.executable, "-m", "tensortrail", "trace", "--quiet", "--directory", str(run)]
    done = subprocess.run(
        [*command, str(script)], env=with_release(f"transformers {version}"),
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return found(open_run(run))


def test_the_newest_release_asks_for_the_disk(tmp_path: Path) -> None:
    assert not watched(tmp_path, program("Llama", SAVED), "OFF103").found
