"""DEV532, `made-beside-others`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.findings import Severity
from tensortrail.rules import all_rules
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("return (ids == -1) & (x[:, 4] > 0).cpu()", False),
        ("return ids, x", True),
    ],
)
def test_what_meets_a_tensor_of_the_cpu(use: str, expected: bool) -> None:
    source = (
        HEAD + "class Tracker(nn.Module):\n    def track(self, x: torch.Tensor):\n"
        "        x = x.to(self.weight.device)\n"
        f"        ids = torch.full((x.size(0),), -1, dtype=x.dtype)\n        {use}\n"
    )
    assert (severity("DEV532", source) is Severity.WARNING) is expected


PADDED = """
import torch

class Rows{bases}:
    def padded(self, ids: torch.Tensor, n):
        return torch.cat([ids, torch.zeros(n, dtype=ids.dtype)])
"""
PADDED_IN_MODULE = PADDED.format(bases="(torch.nn.Module)")
PLAIN_PADDED = """
import torch

def padded(ids: torch.Tensor, n):
    return torch.cat([ids, torch.zeros(n, dtype=ids.dtype)])
"""


def test_a_tensor_made_beside_another_is_a_warning_in_a_module() -> None:
    assert severity("DEV532", PADDED_IN_MODULE) is Severity.WARNING
    assert severity("DEV532", PLAIN_PADDED) is Severity.NOTE


@pytest.mark.parametrize("path", ["package/export_onnx.py", "tools/profile.py"])
def test_it_is_a_note_where_the_file_is_for_the_cpu(path: str) -> None:
    assert severity("DEV532", PADDED_IN_MODULE, path) is Severity.NOTE


@pytest.mark.parametrize("base", ["Dataset", "SequenceFeatureExtractor", "Collator"])
def test_it_is_a_note_in_a_class_that_prepares_data(base: str) -> None:
    assert severity("DEV532", PADDED.format(bases=f"({base})")) is Severity.NOTE


def test_several_that_are_given_no_device_are_meant_for_the_cpu() -> None:
    source = """
    import torch

    def padded(ids: torch.Tensor, mask: torch.Tensor, n):
        ids = torch.cat([ids, torch.zeros(n, dtype=ids.dtype)])
        return ids, torch.ones(n)
    """
    assert severity("DEV532", source) is not Severity.WARNING


@pytest.mark.parametrize(
    ("value", "expected"), [("1", Severity.NOTE), ("self.mix(x[i])", Severity.WARNING)]
)
def test_what_is_returned_is_reported_if_it_holds_something_computed(
    value: str, expected: Severity
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Gathered(nn.Module):
        def forward(self, x):
            rows, columns = x.size()
            found = torch.zeros(rows, columns)
            for i in range(rows):
                found[i] = {value}
            return found
    """
    assert severity("DEV532", source) is expected


PASSED_ON = """
import torch

def read(rows, names=None):
    first = rows[:, 0] * 2
    return first{moved}.numpy()

class Rows(torch.nn.Module):
    def padded(self, ids: torch.Tensor, n):
        return torch.cat([ids, torch.zeros(n, dtype=ids.dtype)])

    def prepared(self, ids: torch.Tensor, n):
        return {taken}, self.padded(ids, n)
"""


@pytest.mark.parametrize(
    ("moved", "taken", "expected"),
    [
        ("", "read(ids)", Severity.NOTE),
        ("", "read(names=n, rows=ids)", Severity.NOTE),
        ("", "read(made())", Severity.WARNING),
        (".cpu()", "read(ids)", Severity.WARNING),
    ],
)
def test_numpy_in_another_function_is_one_too(moved: str, taken: str, expected: Severity) -> None:
    assert severity("DEV532", PASSED_ON.format(moved=moved, taken=taken)) is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("'cpu'", Severity.NOTE),
        ("torch.device('cpu')", Severity.NOTE),
        ("pick()", Severity.WARNING),
    ],
)
def test_a_file_whose_device_is_the_cpu(said: str, expected: Severity) -> None:
    source = PADDED_IN_MODULE.replace("import torch\n", f"import torch\n\ndevice = {said}\n")
    assert severity("DEV532", source) is expected


def test_a_note_does_not_stand_beside_a_warning_about_the_same_line() -> None:
    source = """
    import torch

    def masked(query: torch.Tensor, keys: torch.Tensor):
        bias = torch.zeros(3, 3, device=query.device)
        mask = torch.ones(3, 3, dtype=query.dtype)
        return bias + mask + query
    """
    rules = [all_rules()[code]() for code in ("DEV521", "DEV532")]
    found = judge("package/model.py", dedent(source).encode(), rules, open_project()).findings
    assert [(each.code, each.severity) for each in found] == [("DEV532", Severity.WARNING)]


def test_a_collator_with_more_to_its_name_prepares_data() -> None:
    source = """
    import torch

    class DataCollator{more}:
        def padded(self, rows: torch.Tensor, n, device):
            ones = torch.ones(len(rows), n, device=device)
            return torch.cat((rows, ones, torch.zeros(len(rows), n, dtype=rows.dtype)), dim=1)
    """
    assert severity("DEV532", source.format(more="WithPadding")) is Severity.NOTE
    assert severity("DEV532", source.format(more="s")) is Severity.WARNING


@pytest.mark.parametrize(
    ("asked", "expected"), [("shape[0] == 0", True), ("config is None", False)]
)
def test_the_dtype_of_a_variable_of_which_nothing_is_known(asked: str, expected: bool) -> None:
    """A model has a dtype too, and no shape."""
    source = f"""
    import torch

    def scores(rank, pids):
        found = rank(pids)
        if found.{asked}:
            return [torch.zeros((len(pids),), dtype=found.dtype), None]
        return [found, None]
    """
    assert (severity("DEV532", source) is Severity.NOTE) is expected


@pytest.mark.parametrize(
    ("kept", "expected"),
    [("total = {made}", Severity.NOTE), ("self.total = {made}", None), ("return {made}", None)],
)
def test_what_a_method_makes_with_the_dtype_of_its_own_tensor(
    kept: str, expected: Severity | None
) -> None:
    """What it keeps or gives back may become that tensor."""
    made = "torch.tensor([1.0, 2.0], dtype=self.rows.dtype)"
    source = HEAD + (
        "class Table(nn.Module):\n    def __init__(self, rows: torch.Tensor):\n"
        "        super().__init__()\n        self.rows = rows\n\n"
        f"    def scaled(self, save):\n        {kept.format(made=made)}\n"
        "        save(torch.cat([self.rows, total]))\n"
    )
    assert severity("DEV532", source) is expected


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("use_gpu", Severity.NOTE), ("not use_gpu", None), ("device == 'cuda'", None)],
)
def test_a_branch_for_gpus_is_not_meant_for_the_cpu(asked: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def scores(rank, pids, use_gpu, device):
        found = rank(pids)
        if {asked}:
            return [torch.zeros((len(pids),), dtype=found.dtype), found.shape]
        return [found, None]
    """
    assert severity("DEV532", source) is expected


STATE = """
import torch

class Factored(torch.optim.Optimizer):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                {source}
                shape = grad.shape
                self.state[p]["rows"] = torch.zeros(shape[:-1], dtype=grad.dtype)
"""


@pytest.mark.parametrize(
    ("source", "expected"),
    [("grad = p.grad", Severity.NOTE), ("grad = p.grad.cpu()", None)],
)
def test_state_that_takes_the_type_of_a_gradient(source: str, expected: Severity | None) -> None:
    """A weight lies where its model does; what else a loop goes through may lie anywhere."""
    assert severity("DEV532", STATE.format(source=source)) is expected
