"""The wrapper classes of torchao: nothing is stood in for."""

from __future__ import annotations

import pickle
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchao")

import torch

from benchmarks.subclasses import PAGE, details
from tensortrail.doctor.subclass.families.torchao import MAKERS
from tensortrail.doctor.subclass.words import Examination, Verdict
from tests import warm
from tests.parts import first_of

pytestmark = [pytest.mark.real, pytest.mark.filterwarnings("ignore")]
LOSES = "WeightWithDynamicFloat8CastTensor"
TRAINED = (
    "BitNetTrainingLinearWeight",
    "Int8MixedPrecisionTrainingLinearWeight",
    "Float8TrainingWeightWrapperTensor",
    "MXFP8TrainingWeightWrapperTensor",
)


EXAMINES = """\
import pickle, sys
from tensortrail.doctor.subclass.examine import examine
from tensortrail.doctor.subclass.families.torchao import MAKERS
name, *uses = sys.argv[1:]
with open("found", "wb") as file:
    pickle.dump(examine(MAKERS[name], uses), file)
"""


def examined(name: str, *uses: str) -> Examination:
    """In a process without what other tests left behind, as the command is."""
    with TemporaryDirectory() as folder:
        Path(folder, "program.py").write_text(EXAMINES)
        done = warm.run(["program.py", name, *uses], Path(folder))
        assert not done.returncode, done.stderr
        found = pickle.loads(Path(folder, "found").read_bytes())
    assert isinstance(found, Examination)
    return found


@pytest.fixture(scope="module")
def found() -> Examination:
    return examined(LOSES)


def verdict(found: Examination, op: str) -> Verdict:
    (row,) = (each for each in found.rows if each.op == op)
    return row.verdict


@pytest.mark.complete
def test_the_silent_loss_of_an_asynchronous_save_is_predicted(found: Examination) -> None:
    (lost,) = (each for each in found.rows if each.op == "dcp.async_save, dcp.load")
    assert lost.verdict is Verdict.WRONG_VALUES
    assert lost.told == "_tensor has uninitialised memory"
    assert lost.codes == ("XFR604",)
    assert verdict(found, "new_empty(size, device=cpu)") is Verdict.WRONG_TYPE
    assert verdict(found, "StateDictStager.stage") is Verdict.WRONG_TYPE


def test_what_it_does_well_is_not_complained_of(found: Examination) -> None:
    assert verdict(found, "dcp.save, dcp.load") is Verdict.HANDLED
    assert {row.verdict for row in found.rows if row.use == "FSDP2"} == {Verdict.HANDLED}


def test_the_table_in_the_documentation_is_what_is_seen(found: Examination) -> None:
    if found.versions != "torchao 0.18.0, torch 2.13.0+cpu" or torch.cuda.is_available():
        pytest.skip("the table is of torchao 0.18.0 and torch 2.13.0 on a CPU")
    assert "\n".join(details(found)).strip() in Path(PAGE).read_text(encoding="utf-8")


@pytest.mark.complete
@pytest.mark.parametrize("name", first_of(TRAINED))
def test_others_lose_their_values_in_the_same_way(name: str) -> None:
    lost = examined(name, "save and load").rows[-1]
    assert lost.op == "dcp.async_save, dcp.load"
    assert lost.told == "_data has uninitialised memory"


@pytest.mark.parametrize("name", MAKERS)
def test_every_maker_makes_another_tensor_of_its_class_each_time(name: str) -> None:
    one, other = (MAKERS[name]() for _ in range(2))
    assert type(one).__qualname__ == name.rpartition(".")[2]
    assert one is not other
    assert one.device.type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("name", first_of(["Int8Tensor", "Float8Tensor", "MXTensor"]))
@pytest.mark.complete
def test_inference_weights_refuse_what_they_do_not_know(name: str) -> None:
    found = examined(name, "DCP", "FSDP2")
    assert verdict(found, "StateDictStager.stage") is Verdict.RAISES
    assert verdict(found, "dcp.save, dcp.load") is Verdict.HANDLED
    (row,) = (each for each in found.rows if each.op == "new_empty(size, device=cpu)")
    assert row.told.startswith("NotImplementedError (aten.new_empty)")
