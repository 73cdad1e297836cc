"""Loads that leave weights, keys, ties or a sync behind, and their look-alikes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Severity
from tests.rules.recorded import MARK, Seen, watched

NET = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)
    def forward(self, x):
        return self.head(self.body(x))
def part(prefix, state):
    return {key: value for key, value in state.items() if key.startswith(prefix)}
whole, body, x = folder + "/whole.pt", folder + "/body.pt", torch.ones(1, 4)
torch.save(Net().state_dict(), whole)
torch.save(part("body", Net().state_dict()), body)
net = Net()
"""
LEAVES = "net.load_state_dict(torch.load(body), strict=False)"


def program(folder: Path, code: str, source: str) -> Seen:
    return watched(folder, f"{NET}{source}\n", code)


def test_what_the_initialiser_left_is_used(tmp_path: Path) -> None:
    finding = program(tmp_path, "NEW311", f"{LEAVES}  {MARK}\nnet(x)").only
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "body.pt has no values for `Net.head.weight` and `Net.head.bias`: "
        "`torch.nn.functional.linear` at program.py:8 reads the initial values"
    )


def test_the_file_has_other_names(tmp_path: Path) -> None:
    source = f"""
state = {{key.replace("body", "trunk"): value for key, value in torch.load(whole).items()}}
net.load_state_dict(state, strict=False)  {MARK}
net(x)"""
    message = program(tmp_path, "NEW311", source).only.message
    assert ", whose keys begin with `trunk.` there and with `body.` in the model: " in message


def test_the_model_is_wrapped_twice(tmp_path: Path) -> None:
    source = f"""
once = nn.ModuleDict({{"model": Net()}})
twice = nn.ModuleDict({{"model": nn.ModuleDict({{"model": Net()}})}})
twice.load_state_dict(once.state_dict(), strict=False)  {MARK}
twice["model"]["model"](x)"""
    finding = program(tmp_path, "NEW311", source).only
    assert "the model is wrapped twice, its names begin with `model.model.`" in finding.message
    assert "the model inside the outer wrapper" in finding.fixes[0].description


@pytest.mark.parametrize(
    ("source", "severity"),
    [
        (f"{LEAVES}  {MARK}", Severity.NOTE),
        (f"{LEAVES}  {MARK}\ntorch.save(net.state_dict(), whole)", Severity.WARNING),
        (f"{LEAVES}  {MARK}\nimport copy\ncopy.deepcopy(net)(x)", Severity.WARNING),
        (f"net.extra = Net()\n{LEAVES}  {MARK}\nnet(x)", Severity.NOTE),
        (
            f"other = nn.ModuleDict({{'lm': Net()}})\nother.load_state_dict(torch.load(whole), "
            f"strict=False)  {MARK}\nother['lm'](x)",
            Severity.ERROR,
        ),
    ],
)
def test_how_bad_it_is(tmp_path: Path, source: str, severity: Severity) -> None:
    """Never read, saved, copied and read, a small part that fits, another class."""
    finding = program(tmp_path, "NEW311", source).only
    assert finding.severity is severity, finding.message
    assert ("another class" in finding.message) is (severity is Severity.ERROR)


@pytest.mark.parametrize(
    "source",
    [
        f"{LEAVES}\nnet(x).sum().backward()\ntorch.optim.SGD(net.parameters(), 0.1).step()",
        f"{LEAVES}\nnet.load_state_dict(part('head', torch.load(whole)), strict=False)\nnet(x)",
        "net.load_state_dict(torch.load(whole))\n"
        "net.load_state_dict(part('body', torch.load(whole)), strict=False)\nnet(x)",
        f"{LEAVES}\nfor each in net.head.parameters():\n    nn.init.zeros_(each)\nnet(x)",
        f"{LEAVES}\nwith torch.no_grad():\n    net.head.weight.copy_(torch.load(whole)"
        "['head.weight'].half())\n    net.head.bias.zero_()\nnet(x)",
        f"net.head.weight = net.body.weight\nnet.head.bias = net.body.bias\n{LEAVES}\nnet(x)",
        "net.register_buffer('mask', torch.ones(4))\n"
        "net.load_state_dict(torch.load(whole), strict=False)\nnet(x * net.mask)",
        "net.load_state_dict(torch.load(whole))\nnet.lora = nn.Linear(4, 4, bias=False)\n"
        "net.load_state_dict({'lora.weight': torch.ones(4, 4)}, strict=False)\nnet.lora(net(x))",
    ],
)
def test_what_is_given_elsewhere_or_trained_is_no_finding(tmp_path: Path, source: str) -> None:
    program(tmp_path, "NEW311", source)


SCALED = """\
state = torch.load(whole)
state["head.weight"] = state["head.weight"].to(torch.{dtype})
state["{key}"] = torch.ones(4)
torch.save(state, body)
net.load_state_dict(torch.load(body), strict=False)  # flagged
"""


@pytest.mark.parametrize(
    ("dtype", "key", "severity"),
    [
        ("float8_e4m3fn", "head.weight_scale_inv", Severity.ERROR),
        ("int8", "head.weight.absmax", Severity.ERROR),
        ("bfloat16", "head.weight_scale", Severity.NOTE),
        ("float8_e4m3fn", "old_head.weight", Severity.NOTE),
    ],
)
def test_keys_that_nothing_took(tmp_path: Path, dtype: str, key: str, severity: Severity) -> None:
    finding = program(tmp_path, "SHD417", SCALED.format(dtype=dtype, key=key)).only
    assert finding.severity is severity
    assert f"the load left out `{key}` of body.pt" in finding.message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"net.half()\nnet.load_state_dict(torch.load(whole), assign=True)  {MARK}",
         "`assign=True` replaced 4 weights float16 -> float32"),
        (f"net.half()\nnet.load_state_dict(torch.load(body), strict=False, assign=True)  {MARK}",
         "`assign=True` replaced 2 weights float16 -> float32; the model has 2 in cpu float16 and "
         "2 in cpu float32 now"),
        ("net.load_state_dict(torch.load(whole), assign=True)", ""),
        ("net.to('meta')\nnet.load_state_dict(torch.load(whole), assign=True)", ""),
        ("net.half()\nnet.load_state_dict(torch.load(whole))", ""),
    ],
)  # fmt: skip
def test_assigned_weights_are_others(tmp_path: Path, source: str, message: str) -> None:
    assert [each.message for each in program(tmp_path, "SHD418", source).found] == (
        [message] if message else []
    )


def test_assigned_weights_lie_elsewhere(tmp_path: Path) -> None:
    source = f"""{NET}net.to("cuda")
net.load_state_dict(torch.load(whole, map_location="cpu"), assign=True)  {MARK}
"""
    finding = watched(tmp_path, source, "SHD418", "cuda").only
    assert finding.severity is Severity.WARNING
    assert finding.message == "`assign=True` replaced 4 weights cuda:0 -> cpu"


QUANTIZED = "from torchao.quantization import Int8WeightOnlyConfig, quantize_\n"
QUANTIZE = "quantize_(net, Int8WeightOnlyConfig())"
ASSIGN = "net.load_state_dict(torch.load(whole), assign=True)"


def test_assigned_weights_are_quantized_no_more(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    finding = program(tmp_path, "SHD418", f"{QUANTIZED}{QUANTIZE}\n{ASSIGN}  {MARK}").only
    assert finding.severity is Severity.WARNING
    assert finding.message == "`assign=True` replaced 2 weights Int8Tensor -> float32"


def test_weights_are_assigned_and_then_quantized(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    program(tmp_path, "SHD418", f"{QUANTIZED}{ASSIGN}\n{QUANTIZE}")


TIED = """\
net.head.weight = net.body.weight
state = {key: value.clone() for key, value in net.state_dict().items()}
"""


def test_a_load_undoes_ties(tmp_path: Path) -> None:
    source = f"{TIED}net.load_state_dict(state, assign=True)  {MARK}\nnet(x)"
    finding = program(tmp_path, "SHD414", source).only
    assert "`body.weight`, `head.weight` were one parameter" in finding.message


@pytest.mark.parametrize(
    "then",
    [
        "net.load_state_dict(state)\nnet(x)",
        "net.load_state_dict(state, assign=True)\nnet.head.weight = net.body.weight\nnet(x)",
    ],
)
def test_ties_that_are_kept_or_made_again(tmp_path: Path, then: str) -> None:
    program(tmp_path, "SHD414", TIED + then)


ENGINE = """\
trainer = Net()
net.load_state_dict(torch.load(whole))
net(x)
net.load_state_dict(trainer.state_dict())
"""


@pytest.mark.parametrize("again", ["net.load_state_dict(torch.load(whole))", "reload()"])
def test_a_sync_is_overwritten(tmp_path: Path, again: str) -> None:
    reload = """\
def reload():
    for key, value in torch.load(whole).items():
        net.get_parameter(key).data.copy_(value)
"""
    if again == "reload()":
        reload = reload.replace("copy_(value)", f"copy_(value)  {MARK}")
    else:
        again += f"  {MARK}"
    finding = program(tmp_path, "SHD419", f"{reload}{ENGINE}{again}\nnet(x)").only
    assert "those of whole.pt over them before anything reads them" in finding.message
    assert "`torch.nn.functional.linear` at program.py:8 reads the loaded ones" in finding.message


@pytest.mark.parametrize(
    "then",
    [
        "net(x)\nnet.load_state_dict(torch.load(whole))\nnet(x)",
        "net.load_state_dict(torch.load(whole))\nnet.load_state_dict(trainer.state_dict())\nnet(x)",
        "ema = Net()\nema.load_state_dict(net.state_dict())\n"
        "ema.load_state_dict(torch.load(whole))\nema(x)",
    ],
)
def test_a_sync_that_is_read_or_repeated(tmp_path: Path, then: str) -> None:
    """Answered with before, synced again, an EMA copy that is resumed."""
    program(tmp_path, "SHD419", ENGINE + then)


LIBRARIES = {
    "safetensors": "st.load_model(net, half, strict=False)",
    "accelerate": "accelerate.load_checkpoint_in_model(net, half)",
    "accelerate, to a device": "accelerate.load_checkpoint_in_model(net, half, {'': 'cpu'})",
    "a distributed checkpoint": "state = net.state_dict(); dcp.load(state, checkpoint_id=dist, "
    "planner=planner(allow_partial_load=True)); net.load_state_dict(state)",
    "set_model_state_dict": "set_model_state_dict(net, st.load_file(half), "
    "options=StateDictOptions(strict=False, full_state_dict=True))",
}
IMPORTS = """\
import accelerate
import safetensors.torch as st
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner as planner
from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
half, dist = folder + "/half.safetensors", folder + "/dist"
st.save_file(torch.load(body), half)
dcp.save(torch.load(body), checkpoint_id=dist)
"""


@pytest.mark.complete
def test_loads_of_libraries(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    loads = "".join(f"net = Net()\n{load}  {MARK}\nnet(x)\n" for load in LIBRARIES.values())
    told = program(tmp_path, "NEW311", IMPORTS + loads).found
    assert [each.message.partition(" has no")[0] for each in told] == [
        "half.safetensors", "half.safetensors", "half.safetensors", "dist", "half.safetensors",
    ]  # fmt: skip
