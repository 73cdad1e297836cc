"""Models moved by hand after accelerate dispatched or offloaded them, on simulated GPUs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

for _name in ("torch", "accelerate"):
    pytest.importorskip(_name)

from tensortrail.findings import Severity  # noqa: E402
from tests.rules.mending import mended  # noqa: E402
from tests.rules.recorded import found, record, runs_without_findings, watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
GPUS = "cuda:2x1GiB"
MODEL = """\
import accelerate, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(10, 8), torch.nn.Linear(8, 10)
    def forward(self, ids):
        return self.head(self.embed(ids))
model = Net()
"""
TWO_GPUS = 'accelerate.dispatch_model(model, {"embed": 0, "head": 1})\n'
OFFLOADED = 'accelerate.dispatch_model(model, {"embed": 0, "head": "cpu"})\n'
WHOLE = "model, hook = accelerate.cpu_offload_with_hook(model, 0)\n"


@pytest.mark.parametrize("move", ['model.to("cuda:0")', "model.cuda()", "model.head.to(0)"])
def test_a_model_over_two_gpus_goes_to_one(tmp_path: Path, move: str) -> None:
    source = f"{MODEL}{TWO_GPUS}{move}  # flagged\nmodel(torch.tensor([1]))\n"
    seen = watched(tmp_path, source, "DEV509", GPUS)
    assert seen.error is not None  # head gets its inputs on the other one
    assert "`head` is on cuda:0 now, and its hook sends inputs to cuda:1" in seen.only.message
    assert seen.only.severity is Severity.ERROR


def test_a_map_for_one_gpu(tmp_path: Path) -> None:
    pytest.importorskip("libcst")
    source = f'{MODEL}{TWO_GPUS}model.to("cuda:0")  # flagged\nmodel(torch.tensor([1]))\n'
    seen = watched(tmp_path, source, "DEV509", GPUS)
    (setting,) = seen.only.settings
    assert setting.why == (
        "puts the whole model, which takes 680 B, on cuda:0 in the first place, its inputs too; or "
        "leave the move out"
    )
    after = mended(seen)
    assert "dispatch_model(model, {'': 'cuda:0'})" in after
    (tmp_path / "again").mkdir()
    unmarked = after.replace("  # flagged", "").replace("([1])", '([1], device="cuda:0")')
    assert not watched(tmp_path / "again", unmarked, "DEV509", GPUS).found


@pytest.mark.parametrize("move", ['model.to("cuda:0")', "model.cuda()", "model.to(device='cuda')"])
def test_what_accelerate_refuses(tmp_path: Path, move: str) -> None:
    seen = watched(tmp_path, f"{MODEL}{OFFLOADED}{move}  # flagged\n", "DEV509", GPUS)
    assert (
        "`Net` is dispatched: `.to` refuses: You can't move a model"
        in seen.only.message.replace(".cuda`", ".to`")
    )
    assert seen.only.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("move", "after"),
    [
        ('model.to("cuda:0")\n', ""),
        ("model = model.cuda()\n", ""),
        ('placed = model.to("cuda:0")\n', "placed = model\n"),
        ('print(model.to("cuda:0"))\n', "print(model)\n"),
        ('if model:\n    model.to("cuda:0")\n', None),
    ],
)
def test_the_move_is_taken_out(tmp_path: Path, move: str, after: str | None) -> None:
    flagged = move.rstrip("\n") + "  # flagged\n"
    seen = watched(tmp_path, MODEL + OFFLOADED + flagged, "DEV509", GPUS)
    (fix,) = seen.only.fixes
    if after is None:  # nothing would be left of the branch
        assert not fix.edits
        return
    mended_program = seen.fixed.replace("  # flagged", "")
    assert mended_program == MODEL + OFFLOADED + after
    runs_without_findings(tmp_path, mended_program, "DEV509", GPUS)


def test_the_move_is_shown_whole(tmp_path: Path) -> None:
    where = 'import types\nwhere = types.SimpleNamespace(gpu="cuda:0")\n'
    source = f"{MODEL}{OFFLOADED}{where}model.to(where.gpu)  # flagged\n"
    (fix,) = watched(tmp_path, source, "DEV509", GPUS).only.fixes
    assert fix.description == "leave it where it is: take `.to(where.gpu)` out"


def test_what_the_program_handles_is_a_warning(tmp_path: Path) -> None:
    move = (
        'try:\n    model.to("cuda:0")  # flagged\nexcept RuntimeError:\n    torch.ones(1).cuda()\n'
    )
    seen = watched(tmp_path, f"{MODEL}{OFFLOADED}{move}", "DEV509", GPUS)
    assert seen.only.severity is Severity.WARNING


def test_a_part_that_is_offloaded(tmp_path: Path) -> None:
    source = f'{MODEL}{OFFLOADED}model.head.to("cuda:0")\n'
    line = len(source.splitlines())
    _, timeline, error = record(tmp_path, source, GPUS)
    assert isinstance(error, NotImplementedError)
    told = [(each.code, each.site.line) for each in found(timeline)]
    assert told == [("DEV509", line)]
    assert "`model.head.weight` is offloaded and cannot be moved" in found(timeline)[0].message


def test_a_model_offloaded_as_a_whole_and_brought_by_hand(tmp_path: Path) -> None:
    source = f"{MODEL}{WHOLE}model.cuda()  # flagged\nmodel(torch.tensor([1]))\n"
    assert watched(tmp_path, source, "DEV509", GPUS).only.severity is Severity.NOTE


@pytest.mark.parametrize(
    "program",
    [
        f"{TWO_GPUS}model(torch.tensor([1]))",
        f"{TWO_GPUS}model.half()",
        f"{TWO_GPUS}model.to(torch.float64)",
        f"{TWO_GPUS}model.head.to('cuda:1')",
        f"{TWO_GPUS}accelerate.hooks.remove_hook_from_submodules(model)\nmodel.to('cuda:0')",
        f"{OFFLOADED}model(torch.tensor([1]))\nmodel.embed.to(0)",
        f"{OFFLOADED}accelerate.hooks.remove_hook_from_submodules(model)\nmodel.to('cuda:0')",
        f"{WHOLE}model(torch.tensor([1]))\nhook.offload()\nmodel(torch.tensor([1]))",
        f"{WHOLE}hook.remove()\nmodel.cuda()",
        "accelerate.dispatch_model(model, {'': 0})\nmodel.to('cuda:1')",
        "model.to('cuda:0')\nmodel.to('cpu')",
    ],
)
def test_moves_that_nothing_speaks_against(tmp_path: Path, program: str) -> None:
    assert not watched(tmp_path, f"{MODEL}{program}\n", "DEV509", GPUS).found


def test_the_library_s_warning_names_the_line_it_named_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "accelerate.big_modeling"):
        record(tmp_path, f'{MODEL}{TWO_GPUS}model.to("cuda:0")\n', GPUS)
    told = [each for each in caplog.records if "You shouldn't move" in each.message]
    assert [(Path(each.pathname).name, each.funcName) for each in told] == [
        ("big_modeling.py", "wrapper"),
    ]  # fmt: skip


def test_a_model_that_says_it_is_quantized_is_a_stand_in_for_one_of_bitsandbytes(
    tmp_path: Path,
) -> None:
    pytest.importorskip("transformers.modeling_utils")
    source = """\
    import torch, transformers as t
    from transformers.utils.quantization_config import QuantizationMethod
    model = t.GPT2Model(t.GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=9, n_positions=8))
    model.quantization_method = QuantizationMethod.BITS_AND_BYTES
    model.to(torch.float16)  # flagged
    """
    told = watched(tmp_path, source, "DEV509", GPUS).only.message
    assert told.startswith("`GPT2Model` is quantized (bitsandbytes): `.to` refuses: You cannot")
