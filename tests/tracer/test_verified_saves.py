"""Checkpoints are judged when their writer has returned, and the program does not notice."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import tensortrail
from tensortrail.doctor.checkpoint.after_save import judged
from tensortrail.findings import Finding
from tensortrail.rules.timeline import Event
from tensortrail.tracer.noticing.written_checkpoints import WrittenCheckpoints
from tensortrail.tracer.reading.verified_saves import told_of_saves, verified_saves
from tests import warm
from tests.rules.recorded import found, record

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]


class Verified:
    def __init__(self, folder: Path, source: str, rehearse: str = "", judge: Any = judged) -> None:
        folder.mkdir(exist_ok=True)
        self.program, self.timeline, self.error = record(folder, source, rehearse, judge)

    @property
    def events(self) -> list[Event]:
        return verified_saves(self.timeline)

    @property
    def findings(self) -> list[Finding]:
        return [each for each in found(self.timeline) if each.code.startswith("CKP")]

    @property
    def problems(self) -> list[str]:
        return [each.facts.get("problem", "") for each in self.events]


SAVES = """\
import torch
from safetensors.torch import save_file
model = torch.nn.Linear(4, 4)
torch.save(model.state_dict(), folder + "/whole.pt")
save_file(model.state_dict(), folder + "/whole.safetensors")
torch.save(torch.nn.DataParallel(model).state_dict(), folder + "/wrapped.pt")
"""


@pytest.mark.parametrize("devices", ["", "cuda"])
def test_a_finding_stands_at_the_line_that_saved(tmp_path: Path, devices: str) -> None:
    seen = Verified(tmp_path / "run", SAVES, devices)
    assert seen.error is None
    assert [each.facts["writer"] for each in seen.events] == [
        "torch.save", "safetensors.save_file", "torch.save",
    ]  # fmt: skip
    (finding,) = seen.findings
    assert (finding.code, finding.site.line) == ("CKP864", 6)
    assert finding.message.startswith("wrapped.pt, written here: all 2 names begin with 'module.'")
    assert finding.evidence["file"] == str(tmp_path / "run" / "wrapped.pt")
    assert list(told_of_saves(seen.timeline)) == ["3 saves verified, 1 with findings"]


def test_nothing_is_judged_that_nobody_asked_for(tmp_path: Path) -> None:
    seen = Verified(tmp_path / "run", SAVES, judge=None)
    assert not seen.events
    assert not seen.findings


def broken(path: str) -> Mapping[str, Any]:
    raise RuntimeError(f"no idea what {path} is")


def test_an_error_of_the_judge_is_said_and_stays_outside_the_program(tmp_path: Path) -> None:
    seen = Verified(tmp_path / "run", SAVES, judge=broken)
    assert seen.error is None
    assert len(seen.problems) == 3
    assert all(
        each.startswith("the doctor failed: RuntimeError: no idea") for each in seen.problems
    )
    told = list(told_of_saves(seen.timeline))
    assert told[0] == "0 saves verified, 0 with findings"
    assert told[1].startswith(f"not verified: {tmp_path}/run/whole.pt: the doctor failed")


def test_a_file_that_changes_while_it_is_read_is_not_judged(tmp_path: Path) -> None:
    def slow(path: str) -> Mapping[str, Any]:
        Path(path).write_bytes(b"")
        return judged(path)

    seen = Verified(tmp_path / "run", SAVES, judge=slow)
    assert set(seen.problems) == {"it was changed while it was read"}
    assert not seen.findings


def test_a_save_that_fails_is_not_judged(tmp_path: Path) -> None:
    source = """\
    import torch
    torch.save(torch.ones(2), folder + "/first.pt")
    torch.save([torch.ones(2), (each for each in "abc")], folder + "/second.pt")
    """
    seen = Verified(tmp_path / "run", source)
    assert isinstance(seen.error, TypeError)
    assert [each.facts["path"] for each in seen.events] == [str(tmp_path / "run" / "first.pt")]


def test_what_no_check_reads_is_said(tmp_path: Path) -> None:
    source = """\
    import io, torch
    torch.save(torch.ones(2), folder + "/state.tmp")
    torch.save(torch.ones(2), io.BytesIO())
    """
    seen = Verified(tmp_path / "run", source)
    assert seen.problems == ["no check reads a file of the ending 'tmp'"]


DISTRIBUTED = """\
import torch
import torch.distributed.checkpoint as dcp
weights = {"weight": torch.ones(8, 8), "bias": torch.zeros(8)}
dcp.save(weights, checkpoint_id=folder + "/now")
"""


def test_a_distributed_checkpoint_is_judged_as_one(tmp_path: Path) -> None:
    seen = Verified(tmp_path / "run", DISTRIBUTED)
    (event,) = seen.events
    assert event.facts["writer"] == "dcp.save"
    assert not event.facts["found"]
    assert event.facts["checks"] > 3


LATER = """\
import time, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
weights = {"weight": torch.ones(8, 8), "bias": torch.zeros(8)}
future = dcp.async_save(weights, checkpoint_id=folder + "/later")
"""


def saved_later(folder: Path, more: str = "", judge: Any = judged) -> Event:
    import torch.distributed as dist

    try:
        seen = Verified(folder / "run", LATER + more, judge=judge)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    assert seen.error is None
    (event,) = seen.events
    assert event.facts["path"] == str(folder / "run" / "later")
    assert event.site is not None
    assert event.site.line == 4
    return event


@pytest.mark.parametrize("waits", [True, False])
def test_an_asynchronous_save_is_judged_when_it_is_complete(tmp_path: Path, waits: bool) -> None:
    event = saved_later(tmp_path, "future.result()\n" * waits)
    assert not event.facts.get("found")
    done = event.facts.get("checks", 0) > 3
    assert done or event.facts["problem"] == "it was still being written at the end"
    assert done or not waits


def test_a_save_that_is_being_judged_at_the_end_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, at_end = threading.Event(), WrittenCheckpoints._at_end

    def slow(path: str) -> Mapping[str, Any]:
        over.wait(20)
        return judged(path)

    def ends(written: WrittenCheckpoints) -> None:
        at_end(written)
        over.set()

    monkeypatch.setattr(WrittenCheckpoints, "_at_end", ends)
    event = saved_later(tmp_path, "time.sleep(0.5)\n", slow)
    assert event.facts["problem"] == "it was still being written at the end"


def test_a_save_that_is_complete_before_its_call_returns_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.distributed.checkpoint import _async_thread_executor as threads

    executor = threads._ThreadBasedAsyncCheckpointExecutor
    start = executor.execute_save

    def waits(*args: Any, **kwargs: Any) -> Any:
        future = start(*args, **kwargs)
        wait([future])
        return future

    monkeypatch.setattr(executor, "execute_save", waits)
    assert saved_later(tmp_path).facts["checks"] > 3


LIBRARIES = """\
import torch, transformers as t
from accelerate import Accelerator
sizes = dict(hidden_size=64, intermediate_size=128, num_attention_heads=2, num_hidden_layers=3)
made = t.NomicBertModel(t.NomicBertConfig(vocab_size=64, max_position_embeddings=64, **sizes))
made.save_pretrained(folder + "/source")
Accelerator(cpu=True).save_model(made, folder + "/accelerated", max_shard_size="100KB")
model = t.NomicBertModel.from_pretrained(
    folder + "/source", device_map={"": "disk"}, offload_folder=folder + "/offload"
)
model.save_pretrained(folder + "/again", max_shard_size="100KB")
model.save_pretrained(folder + "/fits", max_shard_size=99_327)
"""


@pytest.mark.real
def test_writers_of_folders_are_judged_once_and_as_a_whole(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    seen = Verified(tmp_path / "run", LIBRARIES)
    assert seen.error is None
    names = {Path(each.facts["path"]).name: each for each in seen.events}
    assert list(names) == ["source", "accelerated", "again", "fits"]
    assert not any(names[name].facts["found"] for name in ("source", "accelerated", "fits"))
    assert {each["code"] for each in names["again"].facts["found"]} == {"CKP826", "CKP830"}
    everything = [each.code for each in found(seen.timeline) if each.site.line == 10]
    assert everything == ["SHD402"], "what cut the group explains what is wrong with the files"


@pytest.mark.real
@pytest.mark.complete
def test_writers_of_pipelines_and_adapters(tmp_path: Path) -> None:
    for name in ("diffusers", "peft", "transformers"):
        pytest.importorskip(name)
    source = """\
    import peft, torch, transformers as t
    from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
    unet = UNet2DModel(sample_size=8, block_out_channels=(8,), norm_num_groups=4,
        layers_per_block=1, down_block_types=("DownBlock2D",), up_block_types=("UpBlock2D",))
    unet.save_pretrained(folder + "/unet")
    DDPMPipeline(unet, DDPMScheduler()).save_pretrained(folder + "/pipeline")
    sizes = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, vocab_size=32)
    llama = t.LlamaForCausalLM(t.LlamaConfig(num_attention_heads=2, **sizes))
    adapter = peft.get_peft_model(llama, peft.LoraConfig(target_modules=["q_proj"], r=2))
    adapter.save_pretrained(folder + "/adapter")
    """
    seen = Verified(tmp_path / "run", source)
    assert seen.error is None
    names = [Path(each.facts["path"]).name for each in seen.events]
    assert names == ["unet", "pipeline", "adapter"]
    assert not any(each.facts["found"] for each in seen.events)


def save_both(folder: Path) -> None:
    import torch

    model = torch.nn.Linear(2, 2)
    torch.save(model.state_dict(), folder / "whole.pt")
    torch.save(torch.nn.DataParallel(model).state_dict(), folder / "wrapped.pt")


def told(run: Any) -> list[tuple[str, bool, tuple[str, ...]]]:
    return [(Path(each.path).name, each.fine, each.found) for each in run.saves()]


BOTH = [("whole.pt", True, ()), ("wrapped.pt", False, ("CKP864",))]


def test_a_block_judges_what_is_saved_in_it(tmp_path: Path) -> None:
    with tensortrail.trace(tmp_path / "run", verify_saves=True) as run:
        save_both(tmp_path)
    assert told(run) == BOTH
    assert "CKP864" in {each.code for each in run.findings()}


def test_a_block_inside_another_judges_what_is_saved_in_it_alone(tmp_path: Path) -> None:
    with tensortrail.trace(tmp_path / "run") as outer:
        save_both(tmp_path)
        with tensortrail.trace(verify_saves=True):
            save_both(tmp_path)
        save_both(tmp_path)
    assert told(outer) == BOTH


PROGRAM = """\
import sys, torch
model = torch.nn.Linear(2, 2)
torch.save(torch.nn.DataParallel(model).state_dict(), "wrapped.pt")
print("saved", len(open("wrapped.pt", "rb").read()) > 100)
if len(sys.argv) > 1:
    raise ValueError("an own mistake")
sys.exit(7)
"""


@pytest.mark.parametrize("arguments", [[], ["fails"]])
def test_the_program_prints_and_ends_as_without(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    plain = warm.run(["program.py", *arguments], tmp_path)
    trace = ["-m", "tensortrail", "trace", "--verify-saves", "program.py", *arguments]
    traced = warm.run(trace, tmp_path)
    assert (traced.returncode, traced.stdout) == (plain.returncode, plain.stdout)
    assert plain.returncode == (1 if arguments else 7)
    assert "1 save verified, 1 with findings" in traced.stderr
    assert re.search(r"warning CKP864 +program.py:3 ", traced.stderr)
    assert ("ValueError: an own mistake" in traced.stderr) is bool(arguments)
