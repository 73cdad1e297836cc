"""Each save of an offloaded model that loses weights is told, and no other one; and so is a use
of its weights without their modules.

In full with `--complete`: every model, in every form and size, with three releases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

from tests.real.hf.models import AS_THEY_ARE, JOINED, MODELS  # noqa: E402
from tests.real.hf.saves import Outcome, outcomes, uses  # noqa: E402
from tests.real.releases import with_release  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
ROOT = Path(__file__).parents[3]
INSTALLED = ""
BEFORE, HALF = "transformers 5.13.1", "transformers 5.14.1"


def expected(release: str, model: str, outcome: Outcome) -> list[set[str]]:
    """What may be said of a save: one of these."""
    converts = model not in AS_THEY_ARE
    if release and outcome.form == "disk":  # one place is not taken for offloading
        return [{"SHD401", "SHD405"} if converts else {"SHD405"}]
    if release == BEFORE:
        return [{"SHD401"} if converts else set()]
    if release == HALF:
        return [{"SHD403", "SHD404"}, {"SHD402", "SHD404"}] if outcome.is_sharded else [set()]
    if model in JOINED and outcome.is_sharded:
        return [set(), {"SHD402"}, {"SHD402", "SHD404"}]
    return [set()]


def judge(release: str, model: str, outcome: Outcome) -> None:
    assert set(outcome.codes) in expected(release, model, outcome), outcome
    assert outcome.loads is not bool(outcome.codes), outcome
    if "SHD404" in outcome.codes:
        assert "could not revert some weight conversions" in outcome.error
    assert all(outcome.helps.values()), outcome
    tied = model == "Ernie4_5_Moe"  # accelerate cannot bring both names of a weight
    if not (tied and release and outcome.form == "disk"):
        assert bool(outcome.helps) is bool(outcome.codes), outcome


@pytest.mark.parametrize("model", MODELS)
def test_with_the_installed_release(tmp_path: Path, model: str) -> None:
    sizes = ("100KB",) if model not in JOINED else (None, "100KB")
    for outcome in outcomes(model, tmp_path, forms=("disk",), sizes=sizes):
        judge(INSTALLED, model, outcome)
        assert bool(outcome.codes) is (model in JOINED and outcome.is_sharded)


@pytest.mark.parametrize("model", ["Mixtral"])
def test_a_weight_read_without_its_module(tmp_path: Path, model: str) -> None:
    for _, ran, was_read in uses(model, tmp_path):
        assert "OFF105" not in ran
        assert "OFF105" in was_read


@pytest.mark.complete
@pytest.mark.parametrize("release", [INSTALLED, BEFORE, HALF])
@pytest.mark.parametrize("model", MODELS)
def test_in_full(tmp_path: Path, release: str, model: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.real.hf.saves", str(tmp_path), model],
        cwd=ROOT, env=with_release(release) if release else dict(os.environ),
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.rpartition("OUTCOMES ")[2])
    all_of_them = [Outcome(**each) for each in told["saves"]]
    for outcome in all_of_them:
        judge(release, model, outcome)
    said = {code for outcome in all_of_them for code in outcome.codes}
    wrong = {
        INSTALLED: {"SHD402"} if model in JOINED else set(),
        BEFORE: {"SHD405"},
        HALF: {"SHD403", "SHD404", "SHD405"},
    }
    assert wrong[release] <= said
    for _, ran, was_read in told["uses"]:
        assert "OFF105" not in ran
        assert "OFF105" in was_read
