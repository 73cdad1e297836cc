"""What left a loss without a graph is named by its line; a patch that is offered mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import runs_without_findings, watched

CODE = "NEW314"
HEAD = """\
import torch
from torch import nn

"""
MODEL = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 2)
    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """\
for _ in range(3):
    x, y = torch.randn(4, 8), torch.randint(0, 2, (4,))
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CROSS = "nn.functional.cross_entropy(model(x), y)"


def _marked(source: str, line: str) -> str:
    return source.replace(line, f"{line}  # flagged", 1)


CUTS = {
    "detach": ("", "nn.functional.cross_entropy(model(x).detach(), y)", ".detach()"),
    "data": ("", "nn.functional.cross_entropy(model(x).data, y)", ".data"),
    "item": ("", "torch.tensor(nn.functional.cross_entropy(model(x), y).item())", ".item()"),
    "argmax": ("", "(model(x).argmax(1).float() - y).pow(2).mean()", "Tensor.argmax"),
    "comparison": ("", "(model(x) > 0).float().mean()", "Tensor.gt"),
    "a copy": ("", "torch.tensor(model(x).sum()) * 2", "torch.tensor"),
}


@pytest.mark.parametrize("name", CUTS)
def test_an_operation_without_a_graph(name: str, tmp_path: Path) -> None:
    _, loss, said = CUTS[name]
    step = STEP.format(loss=loss).replace(f"loss = {loss}", f"loss = {loss}  # flagged")
    seen = watched(tmp_path, HEAD + MODEL + step, CODE)
    assert said in seen.only.message
    assert "RuntimeError" in repr(seen.error)


@pytest.mark.parametrize("name", ["detach", "data"])
def test_the_patch(name: str, tmp_path: Path) -> None:
    _, loss, _ = CUTS[name]
    step = STEP.format(loss=loss).replace(f"loss = {loss}", f"loss = {loss}  # flagged")
    seen = watched(tmp_path, HEAD + MODEL + step, CODE)
    runs_without_findings(tmp_path, seen.fixed, CODE)


HELPERS = {
    "in a helper": """\
def scores(x):
    h = model(x)
    h = h.detach()  # flagged
    return h
""",
    "numbers": """\
def scores(x):
    total = 0.0
    for row in model(x):
        total += row.sum().item()  # flagged
    return torch.tensor(total)
""",
    "a list of numbers": """\
def scores(x):
    losses = []
    for row in model(x):
        losses.append(float(row.sum()))  # flagged
    return torch.tensor(losses)
""",
    "a block": """\
def scores(x):
    with torch.no_grad():  # flagged
        h = model(x)
        h = h * 2
    return h
""",
    "a decorator": """\
@torch.no_grad()  # flagged
def scores(x):
    return model(x)
""",
}


@pytest.mark.parametrize("name", HELPERS)
def test_a_helper_and_its_patch(name: str, tmp_path: Path) -> None:
    step = STEP.format(loss="scores(x).mean()")
    seen = watched(tmp_path, HEAD + MODEL + HELPERS[name] + step, CODE)
    runs_without_findings(tmp_path, seen.fixed, CODE)


def test_what_is_only_logged_is_not_the_cause(tmp_path: Path) -> None:
    source = """\
history = []
for _ in range(3):
    x, y = torch.randn(4, 8), torch.randint(0, 2, (4,))
    scores = model(x)
    history.append(scores.detach().mean().item())
    accuracy = (scores.argmax(1) == y).float().mean()
    with torch.no_grad():
        print_this = float(scores.sum())
    frozen = scores.data  # flagged
    loss = nn.functional.cross_entropy(frozen, y)
    loss.backward()
"""
    seen = watched(tmp_path, HEAD + MODEL + source, CODE)
    assert "behind `.data`" in seen.only.message
    assert " and " not in seen.only.message.partition("behind")[2]


def test_everything_frozen(tmp_path: Path) -> None:
    source = """\
def freeze(net):
    for weight in net.parameters():
        weight.requires_grad = False  # flagged
freeze(model)
"""
    seen = watched(tmp_path, HEAD + MODEL + source + STEP.format(loss=CROSS), CODE)
    assert "all 4 parameters of `model` (Net) are frozen, by program.py:16 in freeze" in (
        seen.only.message
    )
    assert "model.head.requires_grad_(True)" in seen.fixed
    runs_without_findings(tmp_path, seen.fixed, CODE)


def test_numpy_has_advice_and_no_patch(tmp_path: Path) -> None:
    source = STEP.format(loss="torch.from_numpy(model(x).detach().numpy()).mean()")
    source = _marked(source, "torch.from_numpy(model(x).detach().numpy()).mean()")
    seen = watched(tmp_path, HEAD + MODEL + source, CODE)
    (fix,) = seen.only.fixes
    assert "NumPy keeps no graph" in fix.description
    assert not fix.edits


def test_a_loss_of_nothing_that_is_trained(tmp_path: Path) -> None:
    source = "loss = torch.zeros(2).mean()\nloss.backward()  # flagged\n"
    seen = watched(tmp_path, HEAD + MODEL + source, CODE)
    assert "does not come from a weight that has gradients" in seen.only.message


def test_a_program_that_catches_it_has_a_note(tmp_path: Path) -> None:
    source = f"""\
for part in (model.body, None):
    x = torch.randn(4, 8)
    try:
        (part(x) if part else x).sum().backward()  # flagged
    except RuntimeError:
        y = torch.ones(2)
{STEP.format(loss=CROSS)}"""
    seen = watched(tmp_path, HEAD + MODEL + source, CODE)
    assert seen.only.severity.value == "note"


HEALTHY = """\
teacher = Net().requires_grad_(False)
queue = []
for _ in range(3):
    x, y = torch.randn(4, 8), torch.randint(0, 2, (4,))
    with torch.no_grad():
        wanted = teacher(x)
    scores = model(x)
    queue.append(scores.detach())
    best = scores.argmax(1)
    loss = nn.functional.mse_loss(scores, wanted) + nn.functional.cross_entropy(scores, best)
    loss = loss + (scores > 0).float().mean() + scores.data.mean() + loss.item()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_is_cut_on_purpose(tmp_path: Path) -> None:
    assert not watched(tmp_path, HEAD + MODEL + HEALTHY, CODE).found


def test_tensors_that_are_gone_are_not_taken_for_the_weights(tmp_path: Path) -> None:
    """Python gives the address of a tensor that is gone to the next one."""
    source = f"""{HEAD}
gone = [torch.ones(1, requires_grad=True) for _ in range(500)]
for each in gone:
    each.requires_grad_(False)
addresses = {{id(each) for each in gone}}
del gone, each

def frozen():
    others = []
    for _ in range(5000):
        weight = nn.Parameter(torch.ones(4), requires_grad=False)
        if id(weight) in addresses:
            break
        others.append(weight)
    return weight

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = frozen(), frozen()
    def forward(self, x):
        return x * self.weight + self.bias

model = Net()
model(torch.ones(4)).sum().backward()  # flagged
"""
    seen = watched(tmp_path, source, CODE)
    assert "are frozen" in seen.only.message
    assert "by program.py" not in seen.only.message
