"""Small programs that work on a CPU and fail on a GPU, with the line that is reported."""

from __future__ import annotations

import textwrap

import pytest

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.rules import all_rules

CODES = ("DEV521", "DEV524", "DEV536", "DEV542")

LOSS_MADE_WITH_WEIGHTS = """
    import torch
    from torch import nn

    def train(model, loader):
        device = torch.device("cuda")
        model.to(device)
        loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]){moved})
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            loss(model(x), y).backward()
    """
COUNTS_OF_A_LOOP = """
    import torch

    def confusion(model, loader, n):
        model = model.cuda()
        counts = torch.zeros(n, n{device})
        for x, y in loader:
            x, y = x.cuda(), y.cuda()
            counts += torch.bincount(n * y + model(x).argmax(1)).view(n, n)
        return counts
    """
SCRIPT = """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    device = "cuda"
    tok = AutoTokenizer.from_pretrained("gpt2")
    model = AutoModelForCausalLM.from_pretrained("gpt2").to(device)
    ids = tok("hello", return_tensors="pt").input_ids{moved}
    print(model.generate(ids, max_new_tokens=10))
    """
LOADED_BY_A_HELPER = """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    def load(name):
        tok = AutoTokenizer.from_pretrained(name)
        model = AutoModelForCausalLM.from_pretrained(name)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model.to(device).eval()
        return tok, model

    def main():
        tok, model = load("gpt2")
        print(model(**tok("a", return_tensors="pt"){moved}).logits)
    """
BACKWARD = """
    import torch

    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(0)

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            mask = torch.ones(x.shape{device})
            mask[x < 0] = 0
            return g * mask
    """
TABLE_OF_A_PLAIN_OBJECT = """
    import torch

    class Diffusion:
        def __init__(self, model, steps):
            self.model = model
            self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), 0)

        def noisy(self, x):
            t = torch.randint(0, 10, (x.shape[0],), device=x.device)
            return self.kept{moved}[t][:, None] * x
    """

DEFAULT_OF_AN_ARGUMENT = """
    import torch
    from torch import Tensor

    def scaled(center: Tensor, by: Tensor | None = None, *, device: torch.device):
        by = torch.tensor([0.0]{device}).repeat(center.size(0)) if by is None else by
        return torch.stack([by, torch.ones(center.size(0), device=device)])
    """
WRITTEN_BY_INDEX = """
    import torch

    def filled(table, rows, n, device):
        table = table.to(device)
        table.index_copy_(0, torch.arange(n{device}), rows.to(device))
        return table
    """


NOISE_OF_A_GENERATOR = """
    import torch
    from torch import nn

    def train(generator, critic, loader, device):
        generator.to(device)
        critic.to(device)
        loss = nn.BCELoss()
        ones = torch.ones(32, 1, device=device)
        for real, _ in loader:
            noise = torch.randn(32, 100{device})
            loss(critic(generator(noise)), ones).backward()
    """
INPUT_OF_A_KEPT_MODEL = """
    import torch

    class Runner:
        def __init__(self, model, device):
            self.model = model.to(device)
            self.device = device

        def warm_up(self):
            dummy = torch.zeros(1, 3, 224, 224{device})
            return self.model(dummy)
    """
ACTIONS_OF_AN_AGENT = """
    import random
    import torch

    class Agent:
        def __init__(self, net):
            self.device = torch.device("cuda")
            self.net = net.to(self.device)

        def learn(self, memory):
            batch = random.sample(memory, 32)
            states = torch.stack([each[0] for each in batch])
            actions = torch.tensor([each[1] for each in batch]{device})
            return self.net(states.to(self.device)).gather(1, actions.unsqueeze(1))
    """
LOSS_KEPT_BY_A_TRAINER = """
    import torch
    from torch import nn

    class Trainer:
        def __init__(self, model, weight, device):
            self.device = device
            self.model = model.to(device)
            self.loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([weight, 1.0]{device}))

        def step(self, x, y):
            return self.loss(self.model(x.to(self.device)), y.to(self.device))
    """
EXAMPLE_OF_AN_EXPORT = """
    import torch
    from torch import nn

    def exported():
        net = nn.Linear(4, 4).cuda().eval()
        example = torch.randn(1, 4{device})
        return torch.export.export(net, (example,))
    """
CHECKPOINTED = """
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint

    def run():
        net = nn.Linear(4, 4).cuda()
        start = torch.zeros(1, 4{device})
        return checkpoint(net, start, use_reentrant=False)
    """
LENGTHS_MOVED_TOO = """
    from torch.nn.utils.rnn import pack_padded_sequence

    def run(rnn, batches, device):
        for x, lengths in batches:
            x, lengths = x.to(device), lengths{moved}
            yield rnn(pack_padded_sequence(x, lengths, batch_first=True))
    """
ADAPTER_PUT_IN = """
    import torch
    from torch import nn

    class Adapter(nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base
            self.low = nn.Parameter(torch.zeros(4, 8))

        def forward(self, x):
            return self.base(x) + (x @ self.low.t()).sum()

    def adapted(net, x):
        net.cuda()
        net.fc = Adapter(net.fc){moved}
        return net(x.cuda())
    """


@pytest.mark.parametrize(
    ("program", "left", "mended", "code", "line"),
    [
        (DEFAULT_OF_AN_ARGUMENT, {"device": ""}, {"device": ", device=device"}, "DEV521", 6),
        (LOSS_MADE_WITH_WEIGHTS, {"moved": ""}, {"moved": ".to(device)"}, "DEV521", 8),
        (COUNTS_OF_A_LOOP, {"device": ""}, {"device": ", device='cuda'"}, "DEV521", 6),
        (SCRIPT, {"moved": ""}, {"moved": ".to(device)"}, "DEV524", 9),
        (LOADED_BY_A_HELPER, {"moved": ""}, {"moved": ".to(model.device)"}, "DEV524", 14),
        (BACKWARD, {"device": ""}, {"device": ", device=x.device"}, "DEV521", 13),
        (WRITTEN_BY_INDEX, {"device": ""}, {"device": ", device=device"}, "DEV521", 6),
        (NOISE_OF_A_GENERATOR, {"device": ""}, {"device": ", device=device"}, "DEV521", 11),
        (INPUT_OF_A_KEPT_MODEL, {"device": ""}, {"device": ", device=self.device"}, "DEV521", 10),
        (ACTIONS_OF_AN_AGENT, {"device": ""}, {"device": ", device=self.device"}, "DEV521", 13),
        (LOSS_KEPT_BY_A_TRAINER, {"device": ""}, {"device": ", device=device"}, "DEV521", 9),
        (EXAMPLE_OF_AN_EXPORT, {"device": ""}, {"device": ", device='cuda'"}, "DEV521", 7),
        (CHECKPOINTED, {"device": ""}, {"device": ", device='cuda'"}, "DEV521", 8),
        (LENGTHS_MOVED_TOO, {"moved": ".to(device)"}, {"moved": ".cpu()"}, "DEV536", 7),
        (TABLE_OF_A_PLAIN_OBJECT, {"moved": ""}, {"moved": ".to(x.device)"}, "DEV521", 7),
        (ADAPTER_PUT_IN, {"moved": ""}, {"moved": ".cuda()"}, "DEV542", 16),
    ],
)
def test_is_reported_until_mended(
    program: str, left: dict[str, str], mended: dict[str, str], code: str, line: int
) -> None:
    assert reported(program.format(**left)) == [(code, line)]
    assert reported(program.format(**mended)) == []


def reported(source: str) -> list[tuple[str, int]]:
    rules = [rule() for code, rule in all_rules().items() if code in CODES]
    text = textwrap.dedent(source).encode()
    return [
        (each.code, each.site.line) for each in judge("p.py", text, rules, open_project()).findings
    ]


def test_a_loss_may_be_moved_with_others() -> None:
    program = textwrap.dedent(LOSS_KEPT_BY_A_TRAINER.format(device=""))
    loop = "\n    def prepare(self):\n        for each in (self.model, self.loss):\n"
    assert reported(program) != []
    assert reported(program + loop + "            each.to(self.device)\n") == []


def test_what_is_not_called_is_no_module() -> None:
    program = textwrap.dedent(NOISE_OF_A_GENERATOR.format(device=""))
    assert reported(program.replace("generator(noise)", "generator.like(noise)")) == []
