"""torchao's tensors around tensors in distributed checkpoints and FSDP2: genuine code only."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchao")

import torch

from tensortrail.findings import Severity
from tensortrail.rules import Did
from tests.real.distributed.programs import told

pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed"),
]
QUANTIZED = """\
from torchao.quantization import quantize_, {0}
model = nn.Sequential(nn.Linear(64, 64, bias=False)).bfloat16()
quantize_(model, {0}())
weight = model[0].weight
"""
MADE = """\
from torchao.prototype.mx_formats.{0} import {1}
model = nn.Sequential(nn.Linear(64, 64, bias=False)).bfloat16()
weight = {1}.{2}(torch.randn(64, 64, dtype=torch.bfloat16){3})
model[0].weight = nn.Parameter(weight, requires_grad=False)
"""
CAST = """\
from torchao.float8.float8_training_tensor import LinearMMConfig
from torchao.float8.fsdp_utils import WeightWithDynamicFloat8CastTensor
model = nn.Sequential(nn.Linear(64, 64, bias=False))
weight = WeightWithDynamicFloat8CastTensor(
    torch.full((64, 64), 3.0), LinearMMConfig(), torch.float8_e4m3fn
)
model[0].weight = nn.Parameter(weight)
"""
WEIGHTS = {
    "Int8Tensor": QUANTIZED.format("Int8WeightOnlyConfig"),
    "Float8Tensor": QUANTIZED.format("Float8WeightOnlyConfig"),
    "MXTensor": MADE.format("mx_tensor", "MXTensor", "to_mx", ", torch.float8_e4m3fn, 32"),
    "NVFP4Tensor": MADE.format("nvfp4_tensor", "NVFP4Tensor", "to_nvfp4", ""),
}
NOT_SHARDED_BY = {
    "Int8Tensor": "torch.chunk",
    "Float8Tensor": "Tensor.new_zeros",
    "MXTensor": "torch.chunk",
    "NVFP4Tensor": "torch.chunk",
}
SAVE = 'dcp.save({"weight": weight}, checkpoint_id=folder + "/saved")\n'
SAVE_LATER = 'dcp.async_save({"weight": weight}, checkpoint_id=folder + "/saved").result()\n'
LOAD = """\
loaded = {"weight": weight.detach().clone()}
dcp.load(loaded, checkpoint_id=folder + "/saved")
assert type(loaded["weight"]) is type(weight.data)
"""


@pytest.mark.parametrize("kind", WEIGHTS)
def test_staging_lacks_an_operation(tmp_path: Path, kind: str) -> None:
    seen = told(tmp_path, WEIGHTS[kind] + SAVE_LATER)
    assert isinstance(seen.error, NotImplementedError)
    assert seen.codes == {"NEW304": SAVE_LATER.strip()}
    finding = seen.of("NEW304")
    assert finding.message.startswith(f"`{kind}` does not answer `Tensor.new_empty`")
    assert finding.severity is Severity.ERROR
    staged = next(step for step in finding.trail if "raised NotImplementedError" in step.message)
    assert "weight" in staged.message


@pytest.mark.parametrize("kind", WEIGHTS)
def test_sharding_lacks_an_operation(tmp_path: Path, kind: str) -> None:
    seen = told(tmp_path, WEIGHTS[kind] + "fully_shard(model)\n")
    assert isinstance(seen.error, NotImplementedError)
    assert seen.codes == {"NEW304": "fully_shard(model)"}
    op = NOT_SHARDED_BY[kind]
    assert f"`{kind}` does not answer `{op}`" in seen.of("NEW304").message


@pytest.mark.parametrize("kind", [*WEIGHTS, "WeightWithDynamicFloat8CastTensor"])
def test_saving_and_loading_at_once_is_well(tmp_path: Path, kind: str) -> None:
    seen = told(tmp_path, WEIGHTS.get(kind, CAST) + SAVE + LOAD)
    assert seen.error is None
    assert not seen.findings
    saved = [each for each in seen.timeline.events(Did.SAVE) if each.storage]
    assert {each.facts["key"] for each in saved} == {"weight"}


def test_staging_loses_values_without_an_error(tmp_path: Path) -> None:
    seen = told(tmp_path, CAST + SAVE_LATER)
    assert seen.error is None
    assert set(seen.codes) == {"NEW304", "XFR604"}
    lost = seen.of("XFR604")
    assert "of type `WeightWithDynamicFloat8CastTensor`, is staged as `Tensor`" in lost.message
    assert lost.site.source.strip() == SAVE_LATER.strip()
    assert "answers `Tensor.new_empty` with a plain `Tensor`" in seen.of("NEW304").message


def test_sharding_a_weight_that_knows_how(tmp_path: Path) -> None:
    seen = told(
        tmp_path, CAST + "fully_shard(model)\nassert 'DTensor' in str(type(model[0].weight))\n"
    )
    assert seen.error is None
    assert not seen.findings
    (swap,) = (each for each in seen.timeline.events(Did.SWAP) if each.op == "fully_shard")
    assert swap.facts["said"] == "sharded over 1 ranks: 64 of 64 along dim 0"
    assert swap.storage is not None
    assert seen.timeline.name(swap.storage).endswith("Sequential.0.weight")


ADDRESSES = """\
known = {}
for name, each in {"one": weight, "two": weight.detach().clone()}.items():
    known[each.data_ptr()] = name
"""
SIZES = """\
def fits(each, needed):
    if each.untyped_storage().nbytes() < needed:
        return False
    return each.untyped_storage().size() != 0
fits(weight, 5000)
"""


@pytest.mark.parametrize("kind", WEIGHTS)
def test_addresses_and_sizes_of_what_has_no_storage(tmp_path: Path, kind: str) -> None:
    seen = told(tmp_path, WEIGHTS[kind] + ADDRESSES + SIZES)
    assert seen.error is None
    assert seen.codes == {
        "STO201": "known[each.data_ptr()] = name",
        "STO203": "if each.untyped_storage().nbytes() < needed:",
    }
    size = seen.of("STO203")
    assert f"of a `{kind}` says 8.2 KB where its inner tensors have " in size.message
    assert size.severity is Severity.WARNING


PLAIN = (
    "model = nn.Sequential(nn.Linear(64, 64, bias=False)).bfloat16()\nweight = model[0].weight\n"
)
FACTORIES = """\
for device in ("cpu", "meta"):
    weight.detach().clone().to(device)
    for make in ("new_empty", "new_zeros"):
        try:
            getattr(weight, make)((64, 64), device=device)
        except NotImplementedError:
            pass
"""


def test_plain_weights_are_well_everywhere(tmp_path: Path) -> None:
    source = PLAIN + SAVE_LATER + SAVE + ADDRESSES + SIZES + FACTORIES + "fully_shard(model)\n"
    seen = told(tmp_path, source)
    assert seen.error is None
    assert not seen.findings


@pytest.mark.parametrize("kind", WEIGHTS)
def test_what_it_answers_it_answers_well(tmp_path: Path, kind: str) -> None:
    """Of its type and on the device that was asked for: NEW301 and NEW303 have nothing to say."""
    seen = told(tmp_path, WEIGHTS[kind] + FACTORIES)
    assert seen.error is None
    assert not {"NEW301", "NEW303", "STO202"} & seen.codes.keys()
