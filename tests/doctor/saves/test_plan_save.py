"""What is planned for a save, against the real save of the offloaded model and its reload."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

for _name in ("torch", "accelerate", "transformers.core_model_loading"):
    pytest.importorskip(_name)

from tensortrail.cli import main  # noqa: E402
from tensortrail.doctor import plan_save  # noqa: E402
from tensortrail.doctor.library_models import NoModel  # noqa: E402
from tests.doctor.saves.families import (  # noqa: E402
    FAMILIES,
    KILOBYTES,
    comes_back,
    offloaded,
    write_model,
)
from tests.doctor.saves.memory import MEASURED, measured  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
FAILING = {20, 50, 60, 80, 100, 150, 200}
"""Kilobytes at which nomic_bert of transformers 5.23.0 is saved in parts."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nomic_bert") / "model"


@pytest.fixture(scope="module")
def whole(folder: Path) -> Any:
    return write_model("nomic_bert", folder)


def test_the_sizes_that_fail_are_known_before(whole: Any, folder: Path) -> None:
    plans = {size: plan_save(folder, f"{size}KB") for size in KILOBYTES}
    assert {size for size, plan in plans.items() if not plan.works} == FAILING
    for plan in plans.values():
        assert bool(plan.shards.cut) is not plan.works
        assert plan.disk == sum(tensor.nbytes for tensor in whole.state_dict().values())


@pytest.mark.parametrize("size", [100, 120])
def test_the_real_save_does_what_is_planned(
    whole: Any, folder: Path, tmp_path: Path, size: int
) -> None:
    model = offloaded(whole, folder)
    plan = plan_save(model, f"{size}KB")
    assert comes_back(whole, model, tmp_path / "again", f"{size}KB") is plan.works
    files = {path.name: path.stat().st_size for path in tmp_path.glob("again/*.safetensors")}
    assert files.keys() == plan.files.keys()
    for name, nbytes in plan.files.items():
        assert 0 < files[name] - nbytes < 4000  # the header
    for limit in (plan.shards.below, plan.shards.above):
        assert (limit is None) is plan.works
        if limit is not None:
            place = tmp_path / str(limit.nbytes)
            assert comes_back(whole, model, place, limit.nbytes)
            assert len(list(place.glob("*.safetensors"))) == limit.files


def test_a_model_that_is_in_memory_is_converted_before_it_is_cut(whole: Any, folder: Path) -> None:
    assert not plan_save(whole, "100KB").by_file
    assert plan_save(whole, "100KB").works
    assert not plan_save(whole, "100KB", by_file=True).works
    assert plan_save(folder, "100KB", by_file=False).works


def test_a_configuration_is_enough(whole: Any, folder: Path) -> None:
    of_folder, of_config = (plan_save(each, 150_000) for each in (folder, folder / "config.json"))
    assert of_config.shards == of_folder.shards
    assert of_config.files == of_folder.files
    assert of_config.wrong == of_folder.wrong


@pytest.mark.parametrize(
    ("size", "config", "reason"),
    [
        ("3 bytes", {}, "is not a size"),
        ("0", {}, "above 0"),
        ("1MB", {"model_type": "nobody"}, "knows no model of the type 'nobody'"),
        ("1MB", {"architectures": None}, "names no class of transformers"),
        ("1MB", {"quantization_config": {"quant_method": "fp8"}}, "quantized"),
    ],
)
def test_where_nothing_can_be_planned_the_reason_is_given(
    whole: Any, folder: Path, tmp_path: Path, size: str, config: dict[str, Any], reason: str
) -> None:
    settings = json.loads((folder / "config.json").read_text())
    path = tmp_path / "config.json"
    path.write_text(json.dumps(settings | config))
    with pytest.raises((NoModel, ValueError), match=reason):
        plan_save(path, size)


def test_the_command_reports_a_finding_with_settings(
    whole: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["doctor", "plan-save", str(folder), "--max-shard-size", "150KB"]
    assert main(asked) == 1
    text = capsys.readouterr().out
    assert "SHD402" in text
    assert "nearest sizes that split none: 131,071 bytes (7 files) below, 163,840" in text
    assert main([*asked, "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["nearest"]["above"] == {"nbytes": 163_840, "files": 6}
    assert [each["name"] for each in told["findings"][0]["settings"]] == [
        "max_shard_size", "save_original_format",
    ]  # fmt: skip
    assert main([*asked, "--exit-zero"]) == 0
    assert main([*asked, "--in-memory"]) == 0
    assert main([*asked[:-1], "120KB"]) == 0
    assert "No findings: 1 file checked" in capsys.readouterr().out
    assert main([*asked[:-1], "much"]) == 2
    assert main(["doctor", "plan-save", str(folder / "nowhere")]) == 2


def test_without_a_save_to_plan_nothing_imports_torch() -> None:
    program = "import sys, tensortrail.doctor, tensortrail.cli.doctor.plan_save\n"
    program += "print('torch' in sys.modules or 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.complete
@pytest.mark.parametrize("family", FAMILIES)
def test_all_families_at_all_sizes(tmp_path: Path, family: str) -> None:
    whole = write_model(family, tmp_path / "model")
    model = offloaded(whole, tmp_path / "model")
    nearest: set[int] = set()
    for size in KILOBYTES:
        plan = plan_save(tmp_path / "model", f"{size}KB")
        assert comes_back(whole, model, tmp_path / str(size), f"{size}KB") is plan.works, size
        nearest |= {limit.nbytes for limit in (plan.shards.below, plan.shards.above) if limit}
    assert bool(nearest) is (family not in ("mixtral", "qwen2_moe"))
    for limit in nearest:
        assert comes_back(whole, model, tmp_path / str(limit), limit), limit


@pytest.mark.complete
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is read there")
@pytest.mark.parametrize(("family", "size"), MEASURED)
def test_memory_at_the_peak_is_that_of_the_plan(family: str, size: str) -> None:
    planned, peak = measured(family, size)
    assert 0.9 * planned < peak < 1.15 * planned
