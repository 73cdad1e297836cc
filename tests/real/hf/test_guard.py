"""With a guard a save that loses weights is stopped before it touches a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

for _name in ("torch", "accelerate", "transformers.modeling_utils"):
    pytest.importorskip(_name)

import tensortrail  # noqa: E402
from tensortrail.findings import Severity  # noqa: E402
from tests import warm  # noqa: E402
from tests.real.hf.models import halves, made  # noqa: E402
from tests.real.hf.saves import value  # noqa: E402
from tests.real.releases import with_release  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.real, pytest.mark.filterwarnings("ignore")]


def offloaded(whole: Any, folder: Path, form: str = "disk") -> Any:
    device_map = {"": "disk"} if form == "disk" else halves(whole)
    place = str(folder.with_name("offload"))
    return type(whole).from_pretrained(folder, device_map=device_map, offload_folder=place)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def stopped(folder: Path, save: Callable[[], None]) -> tensortrail.Stopped:
    with (
        tensortrail.trace(folder / "run", guard=True) as run,
        pytest.raises(tensortrail.Stopped) as found,
    ):
        save()
    assert found.value.finding.code in [each.code for each in run.findings()]
    return found.value


def is_same(one: Any, other: Any) -> bool:
    import torch

    weights, again = one.state_dict(), other.state_dict()
    return set(weights) == set(again) and all(torch.equal(weights[k], again[k]) for k in weights)


@pytest.mark.parametrize("form", ["disk", "cpu+disk"])
def test_files_the_weights_are_offloaded_from_are_not_removed(tmp_path: Path, form: str) -> None:
    whole, source = made("Llama"), tmp_path / "source"
    whole.save_pretrained(source, max_shard_size="100KB")
    before = contents(source)
    model = offloaded(whole, source, form)
    stop = stopped(tmp_path, lambda: model.save_pretrained(source, max_shard_size="1MB"))
    assert contents(source) == before
    assert is_same(whole, type(whole).from_pretrained(source))

    finding = stop.finding
    assert finding.code == "SHD407"
    assert f"will have removed {source}" in finding.message
    setting, in_place = finding.settings
    assert f"{setting.name}={setting.value} in save_pretrained" in str(stop)
    elsewhere = eval(setting.value)
    model.save_pretrained(**{setting.name: elsewhere, "max_shard_size": "1MB"})
    assert is_same(whole, type(whole).from_pretrained(elsewhere))
    assert f"({in_place.imports})" in str(stop)
    weights = value(in_place, model)
    model.save_pretrained(source, **{in_place.name: weights, "max_shard_size": "1MB"})
    assert is_same(whole, type(whole).from_pretrained(source))


def test_nor_are_they_overwritten(tmp_path: Path) -> None:
    """Files of the same names, but with other weights in each."""
    whole, source = made("Llama"), tmp_path / "source"
    whole.save_pretrained(source, max_shard_size=200_000)
    before = contents(source)
    model = offloaded(whole, source)
    stop = stopped(tmp_path, lambda: model.save_pretrained(source, max_shard_size=170_000))
    assert contents(source) == before
    assert "will have overwritten" in stop.finding.message


def test_the_checkpoint_that_a_cut_save_would_replace_is_kept(tmp_path: Path) -> None:
    whole, target = made("NomicBert"), tmp_path / "target"
    whole.save_pretrained(tmp_path / "source")
    whole.save_pretrained(target, max_shard_size="90KB")
    before = contents(target)
    model = offloaded(whole, tmp_path / "source")
    stop = stopped(tmp_path, lambda: model.save_pretrained(target, max_shard_size="100KB"))
    assert contents(target) == before
    assert stop.finding.code == "SHD402"
    limit = int(stop.finding.settings[0].value)
    model.save_pretrained(target, max_shard_size=limit)
    assert is_same(whole, type(whole).from_pretrained(target))


def test_nor_is_one_replaced_by_placeholders(tmp_path: Path) -> None:
    import torch

    whole, file = made("Llama"), tmp_path / "model.pt"
    whole.save_pretrained(tmp_path / "source")
    torch.save(whole.state_dict(), file)
    before = file.read_bytes()

    def save() -> None:
        torch.save(offloaded(whole, tmp_path / "source").state_dict(), file)

    assert stopped(tmp_path, save).finding.code == "SHD405"
    assert file.read_bytes() == before


@pytest.mark.parametrize("form", ["disk", "cpu+disk"])
def test_saves_that_lose_nothing_go_on(tmp_path: Path, form: str) -> None:
    whole, source = made("NomicBert"), tmp_path / "source"
    whole.save_pretrained(source, max_shard_size="90KB")
    with tensortrail.trace(tmp_path / "run", guard=True) as run:
        model = offloaded(whole, source, form)
        model.save_pretrained(tmp_path / "again", max_shard_size=65536)
        model.save_pretrained(tmp_path / "again")
        whole.save_pretrained(source, max_shard_size="100KB")
        whole.save_pretrained(source)
    assert [each for each in run.findings() if each.severity is not Severity.NOTE] == []
    assert is_same(whole, type(whole).from_pretrained(tmp_path / "again"))


SCRIPT = """\
import transformers
name, source, target, size = {arguments!r}
model = getattr(transformers, name).from_pretrained(
    source, device_map={device_map!r}, offload_folder=source + "-offload"
)
model.save_pretrained(target, max_shard_size=size)
"""


def traced(folder: Path, release: str, arguments: tuple[str, ...], device_map: Any) -> Any:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(arguments=arguments, device_map=device_map))
    command = ["-m", "tensortrail", "trace", "--guard", str(script)]
    env = with_release(release) if release else None
    return warm.run(command, folder, env=env)


def others(*names: str) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.complete) for name in names]


@pytest.mark.parametrize("release", ["", *others("transformers 5.13.1", "transformers 5.14.1")])
def test_on_the_command_line(tmp_path: Path, release: str) -> None:
    whole, source = made("Llama"), tmp_path / "source"
    whole.save_pretrained(source, max_shard_size="100KB")
    before = contents(source)
    place = str(source)
    done = traced(tmp_path, release, ("LlamaForCausalLM", place, place, "1MB"), halves(whole))
    assert done.returncode == 3, done.stderr
    assert 'script.py", line 6, in <module>' in done.stderr
    told = done.stderr.partition("tensortrail.Stopped: SHD407 ")[2]
    assert f"change  save_directory='{source}-resaved' in save_pretrained" in told
    after = contents(source)
    weights = [name for name in before if "safetensors" in name]
    assert len(weights) > 2
    assert all(after[name] == before[name] for name in weights)


@pytest.mark.complete
@pytest.mark.parametrize(
    ("release", "told"),
    [
        ("transformers 5.13.1", "SHD401 `revert_weight_conversion` converts"),
        ("transformers 5.14.1", "SHD403 This save fails: it fills the index with dicts"),
    ],
)
def test_saves_that_fail_after_they_removed_files(tmp_path: Path, release: str, told: str) -> None:
    whole, target = made("Mixtral"), tmp_path / "target"
    whole.save_pretrained(tmp_path / "source")
    whole.save_pretrained(target, max_shard_size="90KB")
    before = contents(target)
    arguments = ("MixtralForCausalLM", str(tmp_path / "source"), str(target), "100KB")
    done = traced(tmp_path, release, arguments, halves(whole))
    assert done.returncode == 3, done.stderr
    assert f"tensortrail.Stopped: {told}" in done.stderr
    after = contents(target)
    assert all(after[name] == before[name] for name in before if "safetensors" in name)
