"""Offloaded models of diffusers, recorded on simulated GPUs: what went wrong is told with the hook
that should have acted, and what goes right is not spoken of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

for _name in ("torch", "accelerate", "transformers", "diffusers"):
    pytest.importorskip(_name)

from tensortrail.findings import Severity  # noqa: E402
from tensortrail.rules import Did  # noqa: E402
from tests.real.rehearsal.test_diffusers import forget_the_device  # noqa: E402
from tests.rules.recorded import found, record, watched  # noqa: E402

pytestmark = [pytest.mark.long, pytest.mark.real, pytest.mark.filterwarnings("ignore")]
GPUS = "cuda:1x4GiB"
BLOCKS = """\
import torch
from diffusers.hooks import apply_group_offloading
class Block(torch.nn.Linear):
    def forward(self, x):
        for act in acts:
            act(self)
        return super().forward(x)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(8, 600)
        self.blocks = torch.nn.ModuleList(Block(600, 600) for _ in range(3))
    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x
acts = []
torch.manual_seed(0)
model = Net().eval()
x = torch.randn(2, 8)
with torch.no_grad():
    expected = model(x)
apply_group_offloading(model, torch.device("cuda"), {settings})
"""
SETTINGS = {
    "blocks": 'offload_type="block_level", num_blocks_per_group=2',
    "blocks in a stream": 'offload_type="block_level", num_blocks_per_group=1, use_stream=True',
    "leaves": 'offload_type="leaf_level"',
    "leaves in a stream": 'offload_type="leaf_level", use_stream=True',
    "leaves recorded in a stream": 'offload_type="leaf_level", use_stream=True, record_stream=True',
    "leaves on disk": 'offload_type="leaf_level", offload_to_disk_path=folder + "/off"',
}
RUN = """\
with torch.no_grad():
    for _ in range(3):
        assert torch.allclose(model(x.cuda()).cpu(), expected, atol=1e-5)
"""
ALWAYS = ("blocks", "leaves in a stream")
each_way = pytest.mark.parametrize(
    "settings",
    [
        pytest.param(each, id=name, marks=() if name in ALWAYS else pytest.mark.complete)
        for name, each in SETTINGS.items()
    ],
)


@pytest.fixture(autouse=True)
def _diffusers_looks_for_devices_anew() -> Iterator[None]:
    forget_the_device()
    yield
    forget_the_device()


def blocks(settings: str) -> str:
    return BLOCKS.format(settings=settings)


@each_way
def test_groups_that_do_their_work_are_not_spoken_of(tmp_path: Path, settings: str) -> None:
    _, timeline, error = record(tmp_path, blocks(settings) + RUN, GPUS)
    assert error is None
    assert not found(timeline)
    moves = [e for e in timeline.events(Did.MOVE) if e.facts.get("hook")]
    acts = {str(e.facts["hook"]) for e in moves}
    if "disk" not in settings:
        assert "ModuleGroup.onload_ of blocks.0" in acts
    assert {act.partition(" ")[0] for act in acts} <= {
        "ModuleGroup.onload_", "ModuleGroup.offload_",
    }  # fmt: skip


@each_way
def test_a_weight_that_its_group_left_elsewhere(tmp_path: Path, settings: str) -> None:
    use = "torch.nn.functional.linear(x.cuda(), model.first.weight)  # flagged\n"
    seen = watched(tmp_path, blocks(settings) + RUN + use, "OFF105", GPUS)
    assert seen.only.severity is Severity.ERROR
    leader = "model.first" if "leaf" in settings else "model"
    assert "`model.first.weight`, which is on cpu: diffusers." in seen.only.message
    assert "GroupOffloadingHook brings it to cuda:0 " in seen.only.message
    assert f"only while {leader} itself is called" in seen.only.message
    on_disk = str(tmp_path / "off") if "disk" in settings else "memory"
    assert seen.only.evidence["kept in"].startswith(on_disk)
    assert [each.code for each in found(seen.timeline)] == ["OFF105"]


def test_the_second_block_of_a_group_comes_when_the_first_is_called(tmp_path: Path) -> None:
    use = 'model.blocks[1](torch.ones(1, 600, device="cuda"))\n'
    _, timeline, error = record(tmp_path, blocks(SETTINGS["blocks"]) + RUN + use, GPUS)
    assert error is not None
    (finding,) = found(timeline)
    assert finding.code == "OFF105"
    brought = "on model.blocks.1 brings it to cuda:0 only while model.blocks.0 itself is called"
    assert brought in finding.message


@pytest.mark.parametrize(
    ("settings", "lost"),
    [
        ("leaves", False),
        ("leaves in a stream", True),
        pytest.param("blocks", False, marks=pytest.mark.complete),
        pytest.param("leaves on disk", True, marks=pytest.mark.complete),
    ],
)
def test_what_is_written_while_a_group_is_on_the_device(
    tmp_path: Path, settings: str, lost: bool
) -> None:
    source = f"""{blocks(SETTINGS[settings])}
def decay(block):
    block.weight.zero_()
acts.append(decay)
with torch.no_grad():
    model(x.cuda())
    acts.clear()
    assert torch.allclose(model(x.cuda()).cpu(), expected, atol=1e-5) == {lost}
"""
    _, timeline, error = record(tmp_path, source, GPUS)
    assert error is None
    told = found(timeline)
    assert bool(told) == lost
    if lost:
        assert {each.code for each in told} == {"OFF105"}
        assert "blocks.0.weight` and 2 more were written while their hook" in told[0].message


HELD = """\
kept = []
acts.append(lambda block: kept.append(block.weight.data))
with torch.no_grad():
    model(x.cuda())
"""


@pytest.mark.parametrize(
    "settings", ["leaves in a stream", pytest.param("leaves", marks=pytest.mark.complete)]
)
def test_what_somebody_holds_on_the_device(tmp_path: Path, settings: str) -> None:
    _, timeline, error = record(tmp_path, blocks(SETTINGS[settings]) + HELD, GPUS)
    assert error is None
    (finding,) = found(timeline, "OFF108")
    assert "went from cuda:0 to cpu, but 1.4 MB of the 1.4 MB it left" in finding.message
    assert finding.message.endswith("held by the list `kept`")


PIPELINE = """\
import torch
from tests.real.rehearsal.test_diffusers import drawn, pipeline
pipe = pipeline()
pipe.{offload}()
with torch.no_grad():
    drawn(pipe, "cuda")
"""


@pytest.mark.parametrize(
    "offload",
    [
        "enable_model_cpu_offload",
        pytest.param("enable_sequential_cpu_offload", marks=pytest.mark.complete),
    ],
)
def test_offloaded_pipelines_are_not_spoken_of(tmp_path: Path, offload: str) -> None:
    _, timeline, error = record(tmp_path, PIPELINE.format(offload=offload), GPUS)
    assert error is None
    assert not found(timeline)
    assert offload in [e.facts.get("began") for e in timeline.events(Did.PHASE)]


def test_a_part_of_a_pipeline_used_past_its_hook(tmp_path: Path) -> None:
    use = 'latents = torch.randn(1, 4, 8, 8, device="cuda")\npipe.vae.decoder(latents)  # flagged\n'
    source = PIPELINE.format(offload="enable_model_cpu_offload") + use
    told = watched(tmp_path, source, "OFF105", GPUS).only.message
    assert "accelerate.CpuOffload brings it to cuda:0 only while" in told


def test_its_decode_calls_the_hook(tmp_path: Path) -> None:
    use = 'latents = torch.randn(1, 4, 8, 8, device="cuda")\nwith torch.no_grad():\n'
    use += "    pipe.vae.decode(latents)\n"
    _, timeline, error = record(
        tmp_path, PIPELINE.format(offload="enable_model_cpu_offload") + use, GPUS
    )
    assert error is None
    assert not found(timeline)


@pytest.mark.parametrize(
    ("program", "severity", "told"),
    [
        (
            PIPELINE.format(offload="enable_sequential_cpu_offload") + 'pipe.to("cuda")  # flagged',
            Severity.ERROR,
            "`StableDiffusionPipeline` is offloaded: `.to` refuses",
        ),
        (
            PIPELINE.format(offload="enable_model_cpu_offload") + 'pipe.to("cuda")  # flagged',
            Severity.NOTE,
            "is offloaded as a whole and is moved to cuda:0 by hand",
        ),
        (
            "import diffusers, torch\nfrom tests.real.rehearsal.test_diffusers import vae\n"
            'model = vae()\nmodel.enable_group_offload(torch.device("cuda"),'
            ' offload_type="leaf_level")\nmodel.to("cuda")  # flagged',
            Severity.WARNING,
            "`AutoencoderKL` is offloaded in groups: `.to` does nothing",
        ),
    ],
    ids=["sequential", "model", "group"],
)
def test_what_is_offloaded_is_moved_by_hand(
    tmp_path: Path, program: str, severity: Severity, told: str
) -> None:
    seen = watched(tmp_path, program, "DEV509", GPUS)
    assert told in seen.only.message
    assert seen.only.severity is severity
