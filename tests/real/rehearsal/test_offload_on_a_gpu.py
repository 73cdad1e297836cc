"""The offload programs on a GPU that is there: its rules say there what they say of a rehearsal.

XFR601 is left out: only a rehearsal knows that nobody waited."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
for _name in ("accelerate", "diffusers", "transformers"):
    pytest.importorskip(_name)

from tests.real.hf.test_accelerate_hooks import FUNCTIONAL, HEALTHY, MODEL, SPREADS  # noqa: E402
from tests.real.rehearsal.test_diffusers_watched import (  # noqa: E402
    HELD,
    RUN,
    SETTINGS,
    blocks,
)
from tests.rules.offload.test_plain_offload_run import LAYERS, LOOP, TRAINED  # noqa: E402
from tests.rules.recorded import found, record  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.real,
    pytest.mark.skipif(
        not torch.cuda.is_available(), reason="no GPU: streams and real copies need one"
    ),
    pytest.mark.filterwarnings("ignore"),
]


def codes(folder: Path, source: str) -> set[str]:
    _, timeline, _ = record(folder, source)
    return {each.code for each in found(timeline)}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_groups_in_real_streams(tmp_path: Path, settings: str) -> None:
    assert codes(tmp_path, blocks(settings) + RUN) == set()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_weight_that_its_group_left_elsewhere(tmp_path: Path, settings: str) -> None:
    use = "torch.nn.functional.linear(x.cuda(), model.first.weight)\n"
    assert codes(tmp_path, blocks(settings) + RUN + use) == {"OFF105"}


@pytest.mark.parametrize("settings", ["leaves", "leaves in a stream"])
def test_what_somebody_holds_on_the_device(tmp_path: Path, settings: str) -> None:
    assert codes(tmp_path, blocks(SETTINGS[settings]) + HELD) == {"OFF108"}


@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS.keys())
def test_hooks_of_accelerate(tmp_path: Path, spread: str) -> None:
    assert codes(tmp_path, f"{MODEL}{spread}\n{FUNCTIONAL}\n") == {"OFF105"}


@pytest.mark.parametrize("then", HEALTHY.values(), ids=HEALTHY.keys())
def test_hooks_that_do_their_work(tmp_path: Path, then: str) -> None:
    assert codes(tmp_path, f"{MODEL}{SPREADS['cpu_offload']}\n{then}\n") == set()


def test_a_layer_that_was_forgotten(tmp_path: Path) -> None:
    assert codes(tmp_path, LAYERS + LOOP.replace('    layer.to("cuda")\n', "")) == {"DEV502"}


@pytest.mark.parametrize("pinned", [True, False])
def test_saved_tensors_on_the_cpu(tmp_path: Path, pinned: bool) -> None:
    around = f"with torch.autograd.graph.save_on_cpu(pin_memory={pinned}):"
    assert codes(tmp_path, TRAINED.format(around=around)) == set()
