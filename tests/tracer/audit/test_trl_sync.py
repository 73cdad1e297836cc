"""trl's own sync of weights into an engine in the same process runs on a CPU; only the engine is a
small one. Its sync to a server does not: `VLLMClient` needs vLLM installed, and its
`init_communicator` refuses every device but CUDA, as the weights go over NCCL."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("trl.generation.vllm_generation")
pytest.importorskip("peft")

from tests.rules.recorded import MARK, found, record, watched
from tests.tracer.audit.test_cited_bugs import CODES, ENGINE

TRL = """\
from types import SimpleNamespace as Space
from accelerate import Accelerator
from trl.generation.vllm_generation import VLLMGeneration
class Local(VLLMGeneration):
    def _init_vllm(self):
        runner = Space(model=Space(load_weights=self.load_weights))
        executor = Space(driver_worker=Space(model_runner=runner))
        self.llm = Space(llm_engine=Space(model_executor=executor),
                         wake_up=lambda tags: engine.wake(), reset_prefix_cache=lambda: None)
    def load_weights(self, pairs):
        for name, value in pairs:
            engine.model.get_parameter(name).data.copy_(value)
syncing = Local(trainer, Accelerator(cpu=True), None, enable_sleep_mode=True)
"""
SYNCED = "engine.sleep(buffers)\nsyncing.sync_weights()\n"


def test_the_engine_reads_its_file_over_a_sync_of_trl(tmp_path: Path) -> None:
    """trl#5312: waking reads the file of the engine again, after the sync."""
    line = "            self.model.get_parameter(name).data.copy_(value)\n"
    marked = ENGINE.replace(line, f"{line.rstrip()}  {MARK}\n", 1)
    source = f"{marked}{TRL}{SYNCED}engine.reload()\nengine.answer()\n"
    finding = watched(tmp_path, source, "SHD419").only
    assert "those of model.safetensors" in finding.message


def test_a_weight_that_trl_does_not_send(tmp_path: Path) -> None:
    """Nothing syncs buffers: an engine that frees them has them from nowhere."""
    asleep = SYNCED.replace("buffers", "lambda name: False")
    _, timeline, error = record(tmp_path, f"{ENGINE}{TRL}{asleep}engine.answer()\n")
    assert error is None, error
    told = found(timeline, "NEW306")
    assert told
    assert all("inv_freq`" in each.message for each in told)


@pytest.mark.parametrize("adapter", [False, True], ids=["whole", "adapter"])
def test_a_sync_of_trl(tmp_path: Path, adapter: bool) -> None:
    more = "from peft import LoraConfig, get_peft_model\n"
    more += 'trainer = get_peft_model(trainer, LoraConfig(target_modules=["q_proj"]))\n'
    source = f"{ENGINE}{more if adapter else ''}{TRL}{SYNCED}engine.answer()\n"
    _, timeline, error = record(tmp_path, source)
    assert error is None, error
    assert [f"{e.code} {e.site.line}: {e.message}" for e in found(timeline, *CODES)] == []
