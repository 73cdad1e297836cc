"""What is true of the places and does no harm: it is a note, or not said, where code around it says
that it works on the CPU."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.findings import Finding, Severity
from tensortrail.rules import all_rules
from tensortrail.rules.devices._beforehand import is_beforehand

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
IN_FORWARD = """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.mix = nn.Linear(n, n)

    def forward(self, x):
        return self.mix(x) * torch.ones(3)
"""


def severity(code: str, source: str, path: str = "package/model.py") -> Severity | None:
    """Of the finding of this rule, of which there is one at most."""
    found = findings(code, source, path)
    assert len(found) <= 1
    return found[0].severity if found else None


def findings(code: str, source: str, path: str = "package/model.py") -> tuple[Finding, ...]:
    """Of this rule alone."""
    text = textwrap.dedent(source).encode()
    return judge(path, text, [all_rules()[code]()], open_project()).findings


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


@pytest.mark.parametrize(
    ("path", "expected"),
    [("package/model.py", Severity.WARNING), ("tutorials/model.py", Severity.NOTE)],
)
def test_a_tutorial_that_says_nothing_of_devices(path: str, expected: Severity) -> None:
    assert severity("DEV521", IN_FORWARD, path) is expected


def test_numpy_of_an_argument_is_a_sign_of_the_cpu() -> None:
    source = IN_FORWARD.replace(
        "        return", "        first = x.detach().numpy()[0]\n        return first *"
    )
    assert severity("DEV521", source) is Severity.NOTE


@pytest.mark.parametrize("asked", ["is_fx_proxy(x)", "torch.onnx.is_in_onnx_export()"])
def test_a_branch_for_tracing(asked: str) -> None:
    source = IN_FORWARD.replace("        return", f"        if {asked}:\n            return")
    assert severity("DEV521", source) is Severity.NOTE


@pytest.mark.parametrize(
    "used",
    [
        "x[:, self.table]",
        "score(x, self.table[:3].view(3).to(x.device))",
        "[each * x for each in self.table]",
        "score(x, torch.multinomial(self.table, 3))",
    ],
)
def test_a_plain_attribute_that_may_stay_where_it_is(used: str) -> None:
    source = f"""
    import torch
    from torch import nn

    class Kept(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.table = torch.ones(n)

        def forward(self, x):
            return {used}

    def score(x, table):
        return x * table
    """
    assert severity("DEV530", source) is None
    assert severity("DEV530", source.replace(used, "score(x, self.table)")) is Severity.WARNING


def test_lengths_and_indices_may_be_on_the_cpu() -> None:
    source = """
    import torch
    from torch import nn

    class Read(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.read = nn.LSTM(n, n)

        def forward(self, x, n):
            packed = nn.utils.rnn.pack_padded_sequence(x, torch.full((n,), 3))
            x.index_put_((torch.arange(n),), x[0])
            return self.read(packed)
    """
    assert severity("DEV521", source) is None


def test_a_wrapper_moves_what_it_is_called_with() -> None:
    source = """
    import torch
    from torch import nn

    def trained(model, rank):
        model = nn.parallel.DistributedDataParallel(model.to(rank), device_ids=[rank])
        return model(torch.randn(20, 10))
    """
    assert severity("DEV521", source) is None


def test_a_type_says_the_device_too() -> None:
    source = IN_FORWARD.replace("torch.ones(3)", "torch.ones(3).type(x.type())")
    assert severity("DEV521", source) is None


def test_an_empty_list_has_no_device() -> None:
    source = """
    import torch

    def stacked(rows: list[torch.Tensor], like: torch.Tensor):
        if not rows:
            return torch.empty(0)
        return torch.stack(rows)
    """
    assert severity("DEV531", source) is None


def test_a_file_for_the_current_gpu_alone() -> None:
    source = """
    import torch
    from torch import nn

    class Placed(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.place = nn.Embedding(n, n)

        def forward(self, x):
            return x + self.place(torch.arange(len(x)).cuda())
    """
    other = source + "\n    def blank(x):\n        return torch.zeros(3, device=x.device)\n"
    assert severity("DEV538", source) is Severity.NOTE
    assert severity("DEV538", other) is Severity.WARNING


def test_parts_of_sequences_of_their_own_are_no_batch() -> None:
    source = """
    import torch.nn.functional as F

    def compared(model, {names}, device):
        for x, y in {over}:
            out = model(x.to(device))
            yield F.mse_loss(out, y)
    """
    model = "\n    import torch\n    model = torch.nn.Linear(2, 2)\n"
    of_loader = source.format(names="loader", over="loader") + model
    of_two = source.format(names="xs, ys", over="zip(xs, ys)") + model
    assert severity("DEV540", of_loader) is not Severity.NOTE
    assert severity("DEV540", of_two) in (None, Severity.NOTE)


@pytest.mark.parametrize(
    ("method", "expected"),
    [("", Severity.WARNING), ("\n        def post_init(self):", Severity.NOTE)],
)
def test_what_is_made_beside_the_weights_when_they_are_in_place(
    method: str, expected: Severity
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Packed(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.register_buffer("packed", torch.ones(n)){method}
            self.work = torch.zeros(4, device=self.packed.device)

        def forward(self, x):
            return x * self.packed * self.work
    """
    assert severity("DEV530", source) is expected


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


@pytest.mark.parametrize(
    ("path", "more", "expected"),
    [
        ("package/data/rows.py", "", True),
        ("package/data/rows.py", "    print(ids.device)\n", False),
        ("package/datasets.py", "", False),
    ],
)
def test_a_folder_for_data(path: str, more: str, expected: bool) -> None:
    source = PLAIN_PADDED.replace("    return", f"{more}    return")
    module = PythonModule(path, source.encode(), open_project())
    assert is_beforehand(module, module.nodes(ast.FunctionDef)[0]) is expected


@pytest.mark.parametrize(("folder", "expected"), [("export", True), ("layers", False)])
def test_a_package_that_exports(tmp_path: Path, folder: str, expected: bool) -> None:
    path = tmp_path / "net" / folder / "rows.py"
    path.parent.mkdir(parents=True)
    for each in (path.parent, path.parent.parent):
        (each / "__init__.py").write_text("")
    module = PythonModule(str(path), PLAIN_PADDED.encode(), open_project())
    assert is_beforehand(module, module.nodes(ast.FunctionDef)[0]) is expected
