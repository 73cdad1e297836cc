"""DEV504, `discarded-to`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, findings, severities_in_project, severity

WRITTEN = (
    HEAD + "def fold(bias: torch.Tensor, other: torch.Tensor, values: torch.Tensor):\n"
    "    bias{written}.to({given})\n    return bias + other\n"
)
MOVED = (
    HEAD + "def padded(x: torch.Tensor, edges: torch.Tensor, n):\n"
    "    rows = torch.zeros(n, 2){before}\n    rows.to(x.device)\n"
    "    return torch.cat((edges, rows))\n"
)


@pytest.mark.parametrize(
    ("written", "given", "expected"),
    [
        ("", "other.device", Severity.WARNING),
        (".detach()", "device=bias.device", Severity.WARNING),
        (".copy_(values)", "device=other.device", Severity.NOTE),
        (".copy_(values)", "device=bias.device, dtype=bias.dtype", None),
        ("", "bias.device", None),
    ],
)
def test_a_move_after_writing_in_place(written: str, given: str, expected: Severity | None) -> None:
    source = WRITTEN.format(written=written, given=given)
    assert severity("DEV504", source) is expected
    if expected is not None and written.endswith("(values)"):
        (found,) = findings("DEV504", source)
        assert found.message.endswith("holds what was written into it")


@pytest.mark.parametrize(
    ("body", "expected"), [("x * 2", Severity.WARNING), ("x * at.cos()", Severity.ERROR)]
)
@pytest.mark.parametrize("given", ["at", "at=at"])
def test_what_takes_it_may_not_read_it(body: str, given: str, expected: Severity) -> None:
    source = (
        HEAD + f"def turned(x, at=None):\n    return {body}\n\n\n"
        "def run(x: torch.Tensor):\n    at = torch.arange(3)\n"
        f"    at.to(x.device)\n    return turned(x, {given})\n"
    )
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("x", Severity.WARNING),
        ("x.view(-1)", Severity.WARNING),
        ("torch.zeros(3)", Severity.ERROR),
    ],
)
def test_callers_may_have_moved_what_they_give(made: str, expected: Severity) -> None:
    source = (
        HEAD + "def added(x: torch.Tensor, other: torch.Tensor):\n"
        f"    x = {made}\n    x.to(other.device)\n    return x + other\n"
    )
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", Severity.ERROR),
        (".to(edges.dtype)", Severity.ERROR),
        (".to(edges.device)", Severity.WARNING),
        (".to(edges.device).to(edges.dtype)", Severity.WARNING),
    ],
)
def test_a_move_after_a_move_to_a_tensor(before: str, expected: Severity) -> None:
    assert severity("DEV504", MOVED.format(before=before)) is expected


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ("self.bias = self.bias.to(self.place)", Severity.NOTE),
        ("self.bias = self.bias.to('cpu')", Severity.WARNING),
        ("other = self.bias.to(self.place)", Severity.WARNING),
    ],
)
def test_an_attribute_that_another_method_moves(later: str, expected: Severity) -> None:
    source = (
        HEAD + "class Observer(nn.Module):\n"
        "    def __init__(self, weight: torch.Tensor, bias: torch.Tensor):\n"
        "        super().__init__()\n        self.bias, self.place = bias, weight.device\n"
        "        self.bias = bias\n        self.bias.to(self.place)\n\n"
        f"    def run(self):\n        {later}\n"
    )
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("frozen", "expected"), [("requires_grad", Severity.NOTE), ("kept", Severity.WARNING)]
)
def test_a_parameter_that_is_frozen_next(frozen: str, expected: Severity) -> None:
    source = (
        "def freeze(model):\n    for p in model.parameters():\n        p.detach()\n"
        f"        p.{frozen} = False\n"
    )
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("chosen(x)", None),
        ("chosen(x) if x.any() else torch.arange(3)", Severity.WARNING),
        ("torch.arange(3)", Severity.ERROR),
    ],
)
def test_a_function_of_the_project_may_answer_where_it_is_meant(
    made: str, expected: Severity | None
) -> None:
    source = (
        "import torch\n\ndef chosen(x: torch.Tensor) -> torch.Tensor:\n    return x > 0\n\n"
        f"def run(x: torch.Tensor):\n    mask = {made}\n    mask.to(x.device)\n    return mask\n"
    )
    assert severity("DEV504", source) is expected


NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
HEADS = (
    "import torch\nfrom torch import nn\n\n\nclass Head:\n    def __init__(self, device):\n"
    "        self.device = device\n        kept = torch.ones(2){there}\n"
    "        self.row = nn.Parameter(kept)\n\n    def run(self, rows):\n"
    "        self.row.to(self.device)\n        {then}\n        return self.row + rows\n"
)


@pytest.mark.parametrize(
    ("there", "then", "expected"),
    [
        ("", "rows = rows + 1", ERROR),
        (".to(device)", "rows = rows + 1", WARNING),
        ("", "self.row.data = torch.stack(rows)", NOTE),
    ],
)
def test_a_dropped_move_of_what_is_replaced(there: str, then: str, expected: Severity) -> None:
    assert severity("DEV504", HEADS.format(there=there, then=then)) is expected


def test_a_dropped_move_to_where_the_parameter_was_made() -> None:
    source = HEADS.replace("kept = torch.ones(2){there}", "kept = torch.ones(2).to(self.device)")
    assert severity("DEV504", source.format(then="rows = rows + 1")) is None


@pytest.mark.usefixtures("as_the_rule_says")
@pytest.mark.parametrize(
    ("call", "expected"),
    [("looked(x)", NOTE), ("looked(x, up)", WARNING), ("looked(x, up=rows)", WARNING)],
)
def test_a_dropped_move_of_what_nobody_gives(tmp_path: Path, call: str, expected: Severity) -> None:
    look = (
        "import torch\n\n\ndef looked(x, up=None):\n    if torch.is_tensor(up):\n"
        "        up.to(x.device)\n        return x + up\n    return x\n"
    )
    files = {"look.py": look, "run.py": f"from net.look import looked\n\nprint({call})\n"}
    assert severities_in_project(tmp_path, files, "DEV504") == [expected]


def test_what_is_made_like_another_may_lie_there() -> None:
    made = """
    import torch
    from torch import nn

    def start(batch, device):
        mask = nn.Parameter({factory})
        mask.to(device)
        return mask
    """
    assert severity("DEV504", made.format(factory="torch.zeros_like(batch)")) is Severity.WARNING
    assert severity("DEV504", made.format(factory="torch.zeros(2)")) is Severity.ERROR


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("x.device == 'cpu'", None),
        ("not x.device != 'cpu'", None),
        ("x.device != 'cpu'", Severity.ERROR),
        ("x.device.type == 'cpu'", Severity.ERROR),
        ("not x.is_cuda", Severity.ERROR),
        ("y.device == 'cpu'", Severity.WARNING),
    ],
)
def test_a_move_in_a_branch_that_is_never_taken(test: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def placed(x: torch.Tensor, y: torch.Tensor, device):
        if {test}:
            x.to(device)
        return x
    """
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [("net.load_state_dict(state)", Severity.NOTE), ("return state", Severity.ERROR)],
)
def test_a_state_that_is_loaded_need_not_be_moved(last: str, expected: Severity) -> None:
    source = f"""
import torch

def prepared(net, table: torch.Tensor, device: torch.device):
    state = {{"table": table.float()}}
    state["table"].to(device)
    {last}
"""
    assert severity("DEV504", source) is expected


SHOWN = (
    "import torch\n\n\ndef scores(model, paths, device):\n    rows = []\n    for path in paths:\n"
    "        row = torch.tensor(model.read(path))\n        row.to(device)\n"
    "        rows.append(row)\n    rows = torch.cat(rows)\n    return {last}\n"
)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("rows", Severity.ERROR),
        ("rows.cpu().numpy()", Severity.ERROR),
        ("rows.numpy()", Severity.NOTE),
    ],
)
def test_a_lost_move_of_what_numpy_reads(last: str, expected: Severity) -> None:
    assert severity("DEV504", SHOWN.format(last=last)) is expected


LOOK = (
    "import torch\n\n\ndef look(points, up={usual}):\n    if isinstance(up, list):\n"
    "        up = torch.tensor(up, device=points.device)\n    elif torch.is_tensor(up):\n"
    "        up.to(points.device)\n    return points + up\n"
)


@pytest.mark.parametrize(
    ("usual", "expected"), [("[0, 1, 0]", Severity.WARNING), ("torch.ones(3)", Severity.ERROR)]
)
def test_a_tensor_that_few_callers_give(usual: str, expected: Severity) -> None:
    assert severity("DEV504", LOOK.format(usual=usual)) is expected


@pytest.mark.parametrize(("then", "expected"), [("", None), ("layers[i](x)", Severity.ERROR)])
def test_each_device_in_turn_may_be_warmed_up(then: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def connect(layers, count):
        x = torch.zeros(1)
        for i in range(count):
            x.to(f"cuda:{{i}}")
            {then}
        return x
    """
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"), [("config.build()", None), ("config.table", Severity.ERROR)]
)
def test_what_a_method_gives_is_not_the_method(made: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    class Layer(torch.nn.Module):
        def forward(self, x) -> torch.Tensor:
            return x

    class Config:
        def build(self) -> "Layer":
            return Layer()

        @property
        def table(self) -> torch.Tensor:
            return torch.zeros(4)

    def start(config: Config, device):
        made = {made}
        made.to(device)
        print(made)
    """
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("return rows * x", Severity.ERROR),
        ("return net([{'rows': rows}])", Severity.WARNING),
        ("return net([rows])", Severity.WARNING),
    ],
)
def test_what_is_put_into_a_dict_may_be_moved_by_its_reader(then: str, expected: Severity) -> None:
    source = (
        "import torch\n\n\ndef look(net, x: torch.Tensor, n):\n    rows = torch.zeros(n)\n"
        f"    rows.to(x.device)\n    {then}\n"
    )
    assert severity("DEV504", source) is expected


@pytest.mark.parametrize(
    ("dropped", "expected"),
    [
        ("mask.unsqueeze(1)", Severity.WARNING),
        ("mask.view(2, -1)", Severity.WARNING),
        ("mask.masked_fill(mask > 2, 0)", Severity.WARNING),
        ("mask.mul_(2).view(-1)", None),
        ("mask.unsqueeze_(1)", None),
        ("plot.view(1)", None),
    ],
)
def test_another_shape_that_is_dropped_leaves_the_tensor_as_it_is(
    dropped: str, expected: Severity | None
) -> None:
    source = HEAD + f"def shown(plot, x, mask: torch.Tensor):\n    {dropped}\n    return x + mask\n"
    assert severity("DEV504", source) is expected
