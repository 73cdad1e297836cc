"""OFF101 and OFF102 on simulated GPUs, with a stand-in for Torch-TensorRT. The genuine library
is watched in tests/real/tensorrt."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.analyzer.fixing.suggestions import plan
from tensortrail.findings import Safety, Severity
from tensortrail.rules import Did
from tests.rules.mending import mended
from tests.rules.offload import stand_in_torch_tensorrt
from tests.rules.recorded import Seen, found, record, watched

pytestmark = pytest.mark.long

MODEL = """\
import torch, torch_tensorrt
from torch_tensorrt.dynamo.runtime._MutableTorchTensorRTModule import MutableTorchTensorRTModule
class LanguageModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(32, 8)
        self.head = torch.nn.Linear(8, 32)
model = LanguageModel().cuda()
ids = torch.tensor([[1, 2]], device="cuda")
"""
COMPILED = f"{MODEL}engine = MutableTorchTensorRTModule(model)\nengine.compile()\n"


@pytest.fixture(autouse=True)
def _stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    packages = tmp_path / "site-packages"
    stand_in_torch_tensorrt.install(packages)
    monkeypatch.syspath_prepend(str(packages))
    yield
    for name in [each for each in sys.modules if each.partition(".")[0] == "torch_tensorrt"]:
        del sys.modules[name]


def seen(folder: Path, source: str, code: str) -> Seen:
    return watched(folder, source, code, rehearse="cuda")


def test_refit_moves_the_embedding_though_the_setting_says_no(tmp_path: Path) -> None:
    source = f"{COMPILED}engine.refit_gm()  # flagged\n"
    finding = seen(tmp_path, source, "OFF101").only
    assert finding.message == (
        "`LanguageModel.embed.weight` and 2 more (2.2 KB) went cuda:0 -> cpu inside `refit_gm()` "
        "although `offload_module_to_cpu` is False"
    )
    assert finding.severity is Severity.ERROR
    (setting,) = finding.settings
    assert (setting.call, setting.name, setting.value) == ("to", "device", '"cuda:0"')
    assert "`refit_gm()` does not ask `offload_module_to_cpu`, which is False at" in setting.why
    assert "program.py:10" in setting.why
    assert setting.where == "the module, after `refit_gm()` at program.py:12"
    last = finding.trail[-1]
    assert last.site.file.endswith("_MutableTorchTensorRTModule.py")
    assert last.message == "`refit_gm` calls `deallocate_module` here and does not ask the setting"
    assert last.site.source.strip() == "deallocate_module(self.original_model)"


def test_the_trail_says_one_move_once(tmp_path: Path) -> None:
    source = f"{COMPILED}engine.refit_gm()  # flagged\n"
    trail = seen(tmp_path, source, "OFF101").only.trail
    assert [step.message for step in trail if "# flagged" in step.site.source] == [
        "LanguageModel.embed.weight moved cuda:0 -> cpu by Tensor.to (1.0 KB)",
        "LanguageModel.embed.weight and 2 more went cuda:0 -> cpu inside refit_gm()",
    ]
    assert len(set(trail)) == len(trail)


def test_what_then_meets_is_told_with_the_line(tmp_path: Path) -> None:
    source = f"{COMPILED}engine.refit_gm()  # flagged\nmodel.embed(ids)\n"
    told = seen(tmp_path, source, "OFF101").only.message
    assert told.endswith("; it then met tensor 1x2 (`input`) on cuda:0 at program.py:13")


@pytest.mark.parametrize("use", ["model.embed(ids)", "ids.float() @ model.head.weight[:2, :2]"])
def test_a_part_is_used_after_it_was_taken_away(tmp_path: Path, use: str) -> None:
    source = f"{COMPILED}engine.refit_gm()\n{use}  # flagged\n"
    finding = seen(tmp_path, source, "OFF102").only
    assert "is on cpu since `refit_gm()` at program.py:12; here it meets" in finding.message
    assert finding.severity is Severity.ERROR
    assert [each.name for each in finding.settings] == ["device"]


def test_the_bare_mismatch_stays_unsaid_beside_it(tmp_path: Path) -> None:
    _, timeline, _ = record(tmp_path, f"{COMPILED}engine.refit_gm()\nmodel.embed(ids)\n", "cuda")
    assert [each.code for each in found(timeline) if each.site.line == 13] == ["OFF102"]


@pytest.mark.parametrize(
    ("use", "mended"),
    [
        ("model.embed(ids)", 'model.embed.to("cuda:0")(ids)'),
        ("model.get_input_embeddings()(ids)", 'model.get_input_embeddings().to("cuda:0")(ids)'),
    ],
)
def test_the_fix_takes_the_part_back_and_mends_the_program(
    tmp_path: Path, use: str, mended: str
) -> None:
    getter = "LanguageModel.get_input_embeddings = lambda self: self.embed"
    told = seen(tmp_path, f"{COMPILED}{getter}\nengine.refit_gm()\n{use}  # flagged\n", "OFF102")
    assert mended in told.fixed
    (tmp_path / "again").mkdir()
    _, timeline, error = record(tmp_path / "again", told.fixed, rehearse="cuda")
    assert error is None
    assert not timeline.events(Did.MEET)


def test_a_weight_that_is_read_has_no_fix(tmp_path: Path) -> None:
    use = "ids.float() @ model.head.weight[:2, :2]  # flagged"
    assert not seen(tmp_path, f"{COMPILED}engine.refit_gm()\n{use}\n", "OFF102").only.fixes


def test_a_check_that_moves_the_model_twice(tmp_path: Path) -> None:
    source = f"{COMPILED}engine.update_refit_condition()  # flagged\n"
    told = seen(tmp_path, source, "OFF101").only.message
    assert "went cuda:0 -> cpu inside `update_refit_condition()`" in told


def test_a_module_that_is_read_back(tmp_path: Path) -> None:
    source = f"""{MODEL}
engine = MutableTorchTensorRTModule(torch.nn.Linear(8, 8).cuda())
torch.save(engine, folder + '/e')
engine.load(folder + '/e')  # flagged
"""
    told = seen(tmp_path, source, "OFF101").only.message
    assert "went cuda:0 -> cpu inside `load()`" in told


@pytest.mark.parametrize(
    "call",
    [
        "torch_tensorrt.compile(model, offload_module_to_cpu=True)",
        "MutableTorchTensorRTModule(model, offload_module_to_cpu=True).compile()",
    ],
)
def test_offloads_that_were_asked_for(tmp_path: Path, call: str) -> None:
    assert not seen(tmp_path, f"{MODEL}{call}\n", "OFF101").found


def test_an_asked_for_offload_whose_part_is_used(tmp_path: Path) -> None:
    call = "torch_tensorrt.compile(model, offload_module_to_cpu=True)"
    finding = seen(tmp_path, f"{MODEL}{call}\nmodel.embed(ids)  # flagged\n", "OFF102").only
    assert "since `torch_tensorrt.dynamo.compile()` at program.py:10" in finding.message
    (setting,) = finding.settings
    assert (setting.name, setting.value, setting.call) == (
        "offload_module_to_cpu",
        "False",
        "compile",
    )
    assert "leaves the module on cuda:0" in setting.why
    assert setting.at is not None
    assert setting.at.line == 10


@pytest.mark.parametrize(
    "call",
    [
        "engine = torch_tensorrt.compile(model, offload_module_to_cpu=True)",
        "engine = MutableTorchTensorRTModule(model, offload_module_to_cpu=True)\nengine.compile()",
        "how = {'offload_module_to_cpu': True}\nengine = torch_tensorrt.compile(model, **how)",
    ],
)
def test_the_program_with_the_setting_works(tmp_path: Path, call: str) -> None:
    pytest.importorskip("libcst")
    used = seen(tmp_path, f"{MODEL}{call}\nmodel.embed(ids)  # flagged\n", "OFF102")
    after = mended(used)
    assert after == used.program.read_text().replace("True", "False")
    (tmp_path / "again").mkdir()
    assert not seen(tmp_path / "again", after.replace("  # flagged", ""), "OFF102").found


@pytest.mark.parametrize(
    "call",
    ["engine.refit_gm()", "gone = engine.refit_gm()", "for _ in range(2):\n    engine.refit_gm()"],
)
def test_the_module_is_taken_back_after_the_call(tmp_path: Path, call: str) -> None:
    source = f"{COMPILED}{call}  # flagged\n"
    found = seen(tmp_path, source, "OFF101")
    (fix,) = found.only.fixes
    assert fix.safety is Safety.UNSAFE
    indent = "    " if "for" in call else ""
    assert found.fixed == f'{source}{indent}model.to("cuda:0")\n'
    (tmp_path / "again").mkdir()
    unmarked = found.fixed.replace("  # flagged", "") + "model.embed(ids)\n"
    _, timeline, error = record(tmp_path / "again", unmarked, rehearse="cuda")
    assert error is None
    assert not timeline.events(Did.MEET)


@pytest.mark.parametrize(
    "call",
    [
        "if True: engine.refit_gm()  # flagged",
        "engine.refit_gm(); ids + 1  # flagged",
        "def refit():\n    engine.refit_gm()  # flagged\nrefit()",
    ],
)
def test_a_module_that_cannot_be_named_there_is_not_taken_back(tmp_path: Path, call: str) -> None:
    assert not seen(tmp_path, f"{COMPILED}{call}\n", "OFF101").only.fixes


def test_what_no_setting_mends_is_left_to_the_hand(tmp_path: Path) -> None:
    """`refit_gm` does not ask the setting: giving it would change nothing."""
    pytest.importorskip("libcst")
    use = f"{COMPILED}engine.refit_gm()\nmodel.embed(ids)  # flagged\n"
    wanted = plan(seen(tmp_path, use, "OFF102").found, lambda path: "")
    (left,) = wanted.left
    assert not wanted.files
    assert (left.setting.call, left.setting.value) == ("to", '"cuda:0"')


def test_the_setting_belongs_to_the_call_that_made_the_wrapper(tmp_path: Path) -> None:
    made = "other = MutableTorchTensorRTModule(torch.nn.Linear(2, 2).cuda())\n"
    made += "engine = MutableTorchTensorRTModule(model, offload_module_to_cpu=True)\n"
    use = f"{made}engine.compile()\nmodel.embed(ids)  # flagged\n"
    (setting,) = seen(tmp_path, f"{MODEL}{use}", "OFF102").only.settings
    assert setting.call == "MutableTorchTensorRTModule"
    assert setting.at is not None
    assert setting.at.line == 11


@pytest.mark.parametrize("code", ["OFF101", "OFF102"])
@pytest.mark.parametrize(
    "rest",
    [
        "engine.compile()\nmodel.embed(ids)",
        "model.cpu()\nengine.refit_gm()\nmodel.embed(ids.cpu())",
        "engine.compile()\nmodel.cuda()\nmodel.embed(ids)",
        "model.to('cpu')\ntry:\n    model.embed(ids)\nexcept RuntimeError:\n    model.to('cuda')",
    ],
)
def test_what_the_user_may_do(tmp_path: Path, code: str, rest: str) -> None:
    assert not seen(tmp_path, f"{COMPILED}{rest}\n", code).found


def test_moves_of_any_library_count_when_it_asked_for_them(tmp_path: Path) -> None:
    (tmp_path / "site-packages" / "helpful.py").write_text("def run(m):\n    m.to('cpu')\n")
    source = f"{MODEL}import helpful\nhelpful.run(model)\nmodel.embed(ids)  # flagged\n"
    finding = seen(tmp_path, source, "OFF102").only
    assert "is on cpu since `run()` at program.py:11" in finding.message
    assert not finding.settings
    del sys.modules["helpful"]


def test_every_call_is_a_phase_with_its_setting(tmp_path: Path) -> None:
    _, timeline, error = record(tmp_path, f"{COMPILED}engine.refit_gm()\n", rehearse="cuda")
    assert error is None
    began = [each.facts for each in timeline.events(Did.PHASE) if each.facts.get("call")]
    told = [(each["began"], each["call"], each["offload_module_to_cpu"]) for each in began]
    assert told == [
        ("compile", "compile", False),
        ("compile", "torch_tensorrt.dynamo.compile", False),
        ("compile", "refit_gm", False),
        ("offload", "deallocate_module", None),
    ]
    moved = [each for each in timeline.events(Did.HOOK) if each.op == "refit_gm"]
    assert [(each.facts["count"], each.facts["bytes"]) for each in moved] == [(3, 2176)]


def test_nothing_of_ours_stays_in_the_library(tmp_path: Path) -> None:
    record(tmp_path, COMPILED, rehearse="cuda")
    mutable = sys.modules["torch_tensorrt.dynamo.runtime._MutableTorchTensorRTModule"]
    held = vars(mutable.MutableTorchTensorRTModule)
    assert isinstance(held["load"], staticmethod)
    functions = [held["compile"], held["load"].__func__, mutable.deallocate_module]
    assert not any(hasattr(each, "__wrapped__") for each in functions)
