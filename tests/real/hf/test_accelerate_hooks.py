"""What accelerate's hooks move is told with the hook; a weight they left elsewhere, with why."""

from __future__ import annotations

from pathlib import Path

import pytest

for _name in ("torch", "accelerate"):
    pytest.importorskip(_name)

from tensortrail.findings import Severity  # noqa: E402
from tensortrail.rules import Did  # noqa: E402
from tensortrail.tracer.reading.timeline import open_run  # noqa: E402
from tensortrail.tracer.recording.begin import begin  # noqa: E402
from tensortrail.tracer.recording.options import Options  # noqa: E402
from tensortrail.tracer.rehearsal.devices.spec import parse_spec  # noqa: E402
from tests.rules.recorded import found, record, watched  # noqa: E402

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
GPUS = "cuda:2x1GiB"
MODEL = """\
import accelerate
import torch
from accelerate.hooks import add_hook_to_module, remove_hook_from_module, AlignDevicesHook
from accelerate.utils import align_module_device
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 8)
        self.body = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 2)
    def forward(self, ids):
        return self.head(self.body(self.embed(ids)))
    def logits(self, hidden):
        return self.head(hidden)
model = Net()
ids, hidden = torch.tensor([1]), torch.ones(1, 8)
"""
SPREADS = {
    "cpu_offload": 'accelerate.cpu_offload(model, execution_device="cuda:0")',
    "disk_offload": 'accelerate.disk_offload(model, folder + "/off", execution_device="cuda:0")',
    "dispatch_model": 'places = {"embed": 0, "body": "cpu", "head": "disk"}\n'
    'accelerate.dispatch_model(model, places, offload_dir=folder + "/off")',
    "load_checkpoint_and_dispatch": "accelerate.Accelerator(cpu=True).save_model(model, folder)\n"
    "with accelerate.init_empty_weights():\n    model = Net()\n"
    'accelerate.load_checkpoint_and_dispatch(model, folder, device_map={"embed": 0, "body": "cpu",'
    ' "head": "disk"}, offload_folder=folder + "/off")',
}  # fmt: skip
GPU_HIDDEN = 'hidden.to("cuda:0")'
FUNCTIONAL = f"torch.nn.functional.linear({GPU_HIDDEN}, model.head.weight, model.head.bias)"


@pytest.mark.parametrize("spread", SPREADS)
def test_every_move_of_a_hook_says_which_hook_it_was(tmp_path: Path, spread: str) -> None:
    source = f"{MODEL}{SPREADS[spread]}\nmodel(ids)\nmodel(ids)\n"
    _, timeline, error = record(tmp_path, source, GPUS)
    assert error is None
    moves = [e for e in timeline.events(Did.MOVE) if e.site and e.site.function == "Net.forward"]
    weights = [e.storage for e in moves if e.storage and timeline.is_named(e.storage)]
    told = {(timeline.name(e.storage), e.facts["hook"]) for e in moves if e.storage in weights}
    assert {name for name, _ in told} >= {"Net.body.0.weight", "Net.head.weight", "Net.head.bias"}
    for name, hook in told:
        module = name.removeprefix("Net.").rpartition(".")[0]
        assert hook in {f"AlignDevicesHook.{act}_forward of {module}" for act in ("pre", "post")}
    began = [e.facts.get("began") for e in timeline.events(Did.PHASE)]
    assert spread in began


@pytest.mark.parametrize("spread", ["cpu_offload", "disk_offload"])
def test_a_functional_past_the_module(tmp_path: Path, spread: str) -> None:
    seen = watched(tmp_path, f"{MODEL}{SPREADS[spread]}\n{FUNCTIONAL}  # flagged\n", "OFF105", GPUS)
    assert "`model.head.weight`, which is on meta" in seen.only.message
    assert "Hook brings it to cuda:0 only while model.head itself" in seen.only.message
    kept = str(tmp_path / "off" / "head.weight.dat") if spread == "disk_offload" else "memory"
    assert seen.only.evidence["kept in"] == kept
    assert "for AlignDevicesHook.init_hook of head" in seen.steps


def test_a_hook_that_was_taken_off(tmp_path: Path) -> None:
    source = f"""{MODEL}{SPREADS["cpu_offload"]}
remove_hook_from_module(model.head)
model(ids.cuda())  # called
"""
    line = len(MODEL.splitlines()) + 2
    _, timeline, error = record(tmp_path, source, GPUS)
    assert error is not None
    (finding,) = found(timeline, "OFF105")
    assert finding.severity is Severity.ERROR
    assert (
        f"which brought it to cuda:0, was taken off model.head at program.py:{line}"
        in finding.message
    )
    assert "`model.head.weight`, which is on cpu" in finding.message
    assert "in `Net.forward`" in finding.message
    taken = [e for e in timeline.events(Did.HOOK) if e.op.endswith("remove_hook_from_module")]
    assert [(e.facts["module"], e.site and e.site.line) for e in taken] == [("head", line)]


def test_a_forward_that_was_replaced(tmp_path: Path) -> None:
    source = f"""{MODEL}{SPREADS["cpu_offload"]}
def fast(hidden):
    return torch.nn.functional.linear(hidden, model.head.weight, model.head.bias)  # flagged
model.head.forward = fast
model(ids)
"""
    seen = watched(tmp_path, source, "OFF105", GPUS)
    assert "the module's forward was replaced by fast" in seen.only.message


def test_a_part_of_a_model_that_is_brought_as_a_whole(tmp_path: Path) -> None:
    source = f"""{MODEL}model, hook = accelerate.cpu_offload_with_hook(model, 0)
model.logits(hidden.cuda())
"""
    _, timeline, error = record(tmp_path, source, GPUS)
    assert error is not None
    (finding,) = found(timeline, "OFF105")
    assert "accelerate.CpuOffload brings it to cuda:0 only while model itself is called" in (
        finding.message
    )
    assert "`model.head.weight`, which is on cpu" in finding.message
    assert not finding.settings


def test_hooks_put_on_before_the_recording_began(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"model(ids)\n{FUNCTIONAL}\n".replace('"cuda:0"', '"cpu"'), encoding="utf-8")
    names: dict[str, object] = {}
    exec(MODEL + 'accelerate.cpu_offload(model, execution_device="cpu")', names)
    running = begin(tmp_path / "run")
    try:
        exec(compile(program.read_bytes(), str(program), "exec"), names)
    except RuntimeError:
        pass
    finally:
        running.stop()
    told = found(open_run(tmp_path / "run"))
    assert [(each.code, each.site.line) for each in told] == [("OFF105", 2)]
    assert "`model.head.weight`, which is on meta" in told[0].message


HEALTHY = {
    "called": "model(ids)",
    "a part called": f"model.head({GPU_HIDDEN})",
    "a method that calls the part": f"model.logits({GPU_HIDDEN})",
    "aligned": f"with align_module_device(model.head):\n    {FUNCTIONAL}",
    "taken off everywhere": "accelerate.hooks.remove_hook_from_submodules(model)\nmodel(ids)",
    "taken off and moved": "remove_hook_from_module(model.head)\nmodel.head.cuda()\nmodel(ids)",
    "a forward around the hook": (
        "inner = model.head.forward\nmodel.head.forward = lambda x: inner(x) * 2\nmodel(ids)"
    ),
    "its shape": "model.head.weight.shape, model.head.weight.dtype",
    "a state dict": "model.state_dict()",
    "trained": "model(ids).sum().backward()",
}


@pytest.mark.parametrize("then", HEALTHY.values(), ids=HEALTHY.keys())
def test_hooks_that_do_their_work_are_not_spoken_of(tmp_path: Path, then: str) -> None:
    _, timeline, error = record(tmp_path, f"{MODEL}{SPREADS['cpu_offload']}\n{then}\n", GPUS)
    assert error is None
    assert not found(timeline)


WRITES = {
    "in place": "model.head.weight.mul_(2)",
    "a copy": "model.head.weight.copy_(torch.zeros(2, 8))",
    "an initialisation": "torch.nn.init.zeros_(model.head.weight)",
}


@pytest.mark.parametrize("spread", ["cpu_offload", "disk_offload"])
@pytest.mark.parametrize(
    "write",
    [
        pytest.param(write, id=name, marks=() if name == "in place" else pytest.mark.complete)
        for name, write in WRITES.items()
    ],
)
def test_what_is_written_while_a_hook_has_brought_it_is_lost(
    tmp_path: Path, write: str, spread: str
) -> None:
    source = f"""{MODEL}{SPREADS[spread]}
with align_module_device(model.head), torch.no_grad():  # flagged
    before = model.head.weight.cpu()
    {write}
with align_module_device(model.head):
    assert torch.equal(model.head.weight.cpu(), before)
"""
    seen = watched(tmp_path, source, "OFF105", GPUS)
    assert "`head.weight` was written while its hook had loaded it" in seen.only.message
    assert "thrown away as it was written" in seen.steps


def test_a_weight_that_came_after_the_hooks(tmp_path: Path) -> None:
    source = f"""{MODEL}{SPREADS["cpu_offload"]}
model.head = torch.nn.Linear(8, 3)
model(ids)  # fails in forward
"""
    seen = watched(tmp_path, source.replace("self.head(self.body(self.embed(ids)))",
                   "self.head(self.body(self.embed(ids)))  # flagged"), "OFF105", GPUS)  # fmt: skip
    assert "`model.head.weight`, which is on cpu, made at" in seen.only.message
    assert "came into model after the hooks" in seen.only.message


def test_a_hook_that_moves_its_model_in_compiled_code_is_no_hand(tmp_path: Path) -> None:
    source = f"""{MODEL}
model, hook = accelerate.cpu_offload_with_hook(model, torch.device("cuda:0"))
torch.compile(model, backend="eager")(ids)
"""
    assert not watched(tmp_path, source, "DEV509", GPUS).found


def test_what_is_put_in_its_place_while_a_hook_has_brought_it_is_lost(tmp_path: Path) -> None:
    source = f"""{MODEL}{SPREADS["cpu_offload"].replace("cuda:0", "cpu")}
with align_module_device(model.head):  # flagged
    model.head.weight = torch.nn.Parameter(torch.zeros(2, 8))
with align_module_device(model.head):
    assert model.head.weight.any()
"""
    seen = watched(tmp_path, source, "OFF105", GPUS)
    assert "`head.weight` was replaced while its hook had loaded it" in seen.only.message


@pytest.mark.parametrize(
    ("device", "write"),
    [
        ("cpu", "model.head.weight.mul_(2)"),  # the hook hands out its own memory there
        ("cuda:0", "model.head.weight.sum()"),
        ("cuda:0", "model.head.weight.clone().mul_(2)"),
    ],
)
def test_what_is_kept_or_only_read_is_not_lost(tmp_path: Path, device: str, write: str) -> None:
    source = f"""{MODEL}accelerate.cpu_offload(model, execution_device="{device}")
with align_module_device(model.head), torch.no_grad():
    {write}
"""
    assert not watched(tmp_path, source, "OFF105", GPUS).found


def test_the_explanation_says_why_the_hook_did_not_act(tmp_path: Path) -> None:
    program = f"{MODEL}{SPREADS['cpu_offload']}\nremove_hook_from_module(model.head)\nmodel(ids)"
    running = begin(tmp_path / "run", Options(rehearse=parse_spec(GPUS)))
    try:
        exec(compile(program, "program.py", "exec"), {"__name__": "program"})
    except RuntimeError as error:
        told = running.explanations.explained(error)
    finally:
        running.stop()
    assert "which brought it to cuda:0, was taken off model.head at program.py:" in told
