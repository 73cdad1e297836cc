"""Objects of plain classes: what they keep stays where their class made it."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

SCHEDULE = """
    import torch
    from torch import nn

    class Schedule:
        def __init__(self, steps):
            self.betas = torch.linspace(0, 1, steps)
            self.products = torch.cumprod(1 - self.betas, dim=0)

        def noised(self, x, t):
            return x * self.products[t]

        {method}
"""
USES = {
    "method": "schedule.noised(x, t)",
    "attribute": "x * schedule.betas",
    "of another name": "(x * table.products)",
}


def program(use: str, method: str = "pass", between: str = "pass") -> str:
    return (
        SCHEDULE.format(method=method)
        + f"""
    def train(model, loader, device):
        model.to(device)
        schedule = Schedule(10)
        table = schedule
        {between}
        for x in loader:
            x = x.to(device)
            t = torch.randint(0, 10, (4,), device=device)
            print(model({use}))
    """
    )


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_it_meets_what_was_moved(use: str) -> None:
    assert severity("DEV521", program(use)) is Severity.WARNING


@pytest.mark.parametrize(
    "between",
    [
        "schedule.betas = schedule.betas.to(device)",
        "move_all(schedule, device)",
        "schedule.to(device)",
        "torch.set_default_device(device)",
    ],
)
def test_it_may_have_been_moved(between: str) -> None:
    use = "x * schedule.betas"
    assert severity("DEV521", program(use, between=between)) is None


@pytest.mark.parametrize(
    "method",
    [
        "def to(self, device): self.betas = self.betas.to(device)",
        "def put(self, **given): [setattr(self, name, each) for name, each in given.items()]",
        "def begin(self, device): self.betas = torch.ones(3, device=device)",
    ],
)
def test_its_class_may_move_it(method: str) -> None:
    assert severity("DEV521", program("x * schedule.betas", method=method)) is None


def test_one_that_is_told_a_device_may_be_there() -> None:
    source = program("x * schedule.betas").replace("Schedule(10)", "Schedule(torch.device('cuda'))")
    assert severity("DEV521", source) is None


def test_it_is_kept_by_a_module() -> None:
    source = (
        SCHEDULE.format(method="pass")
        + """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)
            self.schedule = Schedule(3)

        def forward(self, x):
            return self.layer(x) + self.schedule.betas
    """
    )
    assert severity("DEV521", source) is Severity.WARNING


@pytest.mark.parametrize(
    ("moved", "expected"), [("pass", Severity.WARNING), ("self.loss.to(device)", None)]
)
def test_the_weights_of_a_loss_stay(moved: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Trainer:
        def __init__(self, model, device):
            self.device, self.model = device, model.to(device)
            self.loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))
            {moved}

        def step(self, x, y):
            return self.loss(self.model(x.to(self.device)), y.to(self.device))
    """
    assert severity("DEV521", source) is expected
