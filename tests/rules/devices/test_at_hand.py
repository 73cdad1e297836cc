"""Which devices a function has at hand: those of launchers, and of helpers of the project."""

from __future__ import annotations

import textwrap

import pytest

from tests.rules.judged import severity

HELPED = """
from app.utils import {helper}
from app.moving import to_device

class Trainer:
    def gathered(self, param):
        return {move}

    def prepared(self, batch):
        device = {helper}()
        return batch.to(device)
"""


@pytest.mark.parametrize("move", ['param.to("cuda")', "param.cuda()", 'to_device(param, "cuda")'])
def test_a_helper_of_the_project_says_where_it_works(move: str) -> None:
    source = HELPED.format(helper="get_current_device", move=move)
    assert severity("DEV510", source) is not None
    assert severity("DEV510", source.replace("app.utils", "torch.cuda")) is None


def test_a_helper_that_gives_a_gpu_is_not_another_device() -> None:
    source = HELPED.format(helper="get_cuda_device", move="param.cuda()")
    assert severity("DEV510", source) is None


def test_the_accelerator_of_a_class_or_of_a_script() -> None:
    kept = """
    class Trainer:
        def prepared(self, batch):
            return batch.to(self.accelerator.device)

        def taught(self, batch):
            return self.model(batch["ids"].cuda())
    """
    made = """
    from accelerate import Accelerator

    accelerator = Accelerator()

    class Rows:
        def __getitem__(self, at):
            return self.rows[at].cuda()
    """
    assert severity("DEV538", "import torch\nx = torch.ones(3).cuda()\n") is None
    assert severity("DEV510", textwrap.dedent(kept)) is not None
    assert severity("DEV510", textwrap.dedent(made)) is not None
    assert severity("DEV510", textwrap.dedent(kept).replace("self.accelerator", "batch")) is None


def test_what_the_class_gives_to_its_base_says_where_it_works() -> None:
    kept = """
    class Attack(Base):
        def __init__(self, {given}):
            super().__init__(estimator=estimator)

        def given(self, x):
            return torch.tensor(x, device=self.estimator.device)

        def changed(self, x):
            return self.given(x) + torch.zeros(len(x)).cuda()
    """
    source = "import torch\n" + textwrap.dedent(kept)
    assert severity("DEV510", source.format(given="estimator")) is not None
    assert severity("DEV510", source.format(given="x")) is None
