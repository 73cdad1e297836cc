"""DEV542: what places a module before it is called, by another way than a move."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tensortrail.rules.devices.meetings.module_not_moved import ModuleNotMoved
from tensortrail.testing import run
from tests.rules.judged import severity

PLACED = """\
import torch
from accelerate import cpu_offload
from torch import nn
from torch.distributed.fsdp import fully_shard


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(x)

    def load(self, path):
        self.load_state_dict(torch.load(path))
        self.cuda()


net = Net()
net.load("net.pt")
offloaded = nn.Linear(8, 8).eval()
cpu_offload(offloaded, execution_device=torch.device("cuda"))
sharded = nn.Linear(8, 8)
fully_shard(sharded)
x = torch.ones(2, 8, device="cuda")
print(net(x), offloaded(x), sharded(x))
"""


def test_own_methods_and_libraries_place_modules() -> None:
    assert not run(ModuleNotMoved, PLACED)
    left = PLACED.replace("fully_shard(sharded)\n", "").replace('net.load("net.pt")\n', "")
    assert [each.site.line for each in run(ModuleNotMoved, left)] == [20, 23]


@pytest.mark.parametrize(
    ("use", "expected"), [("trainer.train()", None), ("pass", Severity.WARNING)]
)
def test_a_model_that_a_trainer_of_a_library_works_with(
    use: str, expected: Severity | None
) -> None:
    source = (
        "import torch\nimport transformers\nfrom torch import nn\n\n"
        "def run(rows: torch.Tensor, device):\n    rows = rows.to(device)\n"
        "    model = nn.Linear(3, 3)\n    trainer = transformers.Trainer(model=model)\n"
        f"    {use}\n    return model(rows)\n"
    )
    assert severity("DEV542", source) is expected


@pytest.mark.parametrize(
    ("by_hand", "expected"),
    [
        ("net.weight = nn.Parameter(net.weight.detach().cuda())", None),
        ("net.weight.data = net.weight.data.cuda()", None),
        ("for p in net.parameters(): p.data = p.data.cuda()", None),
        ("for _, p in net.named_parameters(): p.data = p.data.to('cuda')", None),
        ("for p in net.parameters(): p.requires_grad_(False)", Severity.WARNING),
        ("net.steps = 3", Severity.WARNING),
    ],
)
def test_parameters_that_are_replaced_one_by_one(by_hand: str, expected: Severity | None) -> None:
    program = f"""
    from torch import nn

    def answer(x):
        net = nn.Linear(4, 4)
        {by_hand}
        return net(x.to("cuda"))
    """
    assert severity("DEV542", program) is expected


def test_the_device_of_a_model_is_where_the_model_lies() -> None:
    source = """
    import torch
    from transformers import AutoModelForSeq2SeqLM

    def answers(name, other):
        model = AutoModelForSeq2SeqLM.from_pretrained(name)
        ids = torch.tensor([[0, 4], [8, 2]], device={device})
        return model(ids)
    """
    assert severity("DEV542", source.format(device="model.device")) is None
    assert severity("DEV542", source.format(device="other.device")) is Severity.WARNING


@pytest.mark.parametrize(
    ("between", "expected"),
    [("quantize(model, device=device)", None),
     ("patch(model)", None),
     ("model.parallelize()", None),
     ("model.compile()", Severity.WARNING),
     ("print(model)", Severity.WARNING),
     ("torch.save(model, name)", Severity.WARNING)],
)  # fmt: skip
def test_another_may_move_the_model(between: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from transformers import AutoModelForCausalLM
    from quantizer.patching import patch, quantize

    def answers(name, device):
        model = AutoModelForCausalLM.from_pretrained(name)
        {between}
        return model(torch.ones(1, device=device))
    """
    assert severity("DEV542", source) is expected
