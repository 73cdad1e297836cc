"""DEV521, `factory-without-device`: where the tensors lie that meet what was made."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import (
    HEAD,
    findings,
    severity,
)


@pytest.mark.parametrize(
    ("index", "expected"), [("rows, columns", Severity.NOTE), ("columns", Severity.WARNING)]
)
def test_indices_of_a_store_come_to_the_tensor(index: str, expected: Severity) -> None:
    source = f"""
import torch
from torch import nn

class Masked(nn.Module):
    def forward(self, x):
        mask = torch.ones(8, 8)
        rows = torch.arange(8).view(-1, 1)
        columns = x.argsort(1)
        mask[{index}] = 0
        return mask
"""
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.ones(steep.shape[:-1])", Severity.WARNING),
        ("torch.tensor(rows, dtype=steep.dtype)", Severity.WARNING),
        ("torch.ones(3, 1)", None),
        ("torch.ones(steep.shape[:-1]).to(steep)", None),
    ],
)
def test_what_is_made_after_a_variable_has_to_lie_with_it(
    made: str, expected: Severity | None
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Newton(nn.Module):
        def step(self, helper, x, rows):
            steep = self.slopes @ helper.bends(x)
            return steep + torch.diag_embed({made})
    """
    assert severity("DEV521", source) is expected


def test_operations_in_place_and_variables_lie_where_their_tensor_does() -> None:
    source = """
    import torch
    from torch import nn
    from torch.autograd import Variable

    class Sampler(nn.Module):
        def drawn(self, middle, spread):
            width = spread.div(2).exp_()
            noise = Variable(torch.randn(width.size()))
            return noise.mul(width).add_(middle)
    """
    assert severity("DEV521", source) is Severity.WARNING


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


def test_a_type_says_the_device_too() -> None:
    source = """
    import torch
    from torch import nn

    class Scaled(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.mix = nn.Linear(n, n)

        def forward(self, x):
            return self.mix(x) * torch.ones(3).type(x.type())
    """
    assert severity("DEV521", source) is None


@pytest.mark.parametrize(
    ("output", "expected"),
    [("torch.zeros(len(found), 5)", None), ("found * 2", Severity.WARNING)],
)
def test_a_helper_of_a_model_may_answer_on_the_cpu(output: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Detect:
        def forward(self, found):
            return {output}

    class Net(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.layer = nn.Linear(n, n)
            self.detect = Detect()

        def forward(self, x):
            return self.detect.forward(self.layer(x))

    class Faces:
        def __init__(self, n, device="cuda"):
            self.device = device
            self.net = Net(n).to(device)

        def boxes(self, image, w, h):
            found = self.net(torch.from_numpy(image).to(self.device)).data
            scale = torch.Tensor([w, h, w, h, 1])
            return (found * scale).cpu().numpy()
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("device", "expected"), [("tokens.device", None), ("self.zero.device", Severity.WARNING)]
)
def test_what_stands_after_a_star_belongs_to_the_last_name(
    device: str, expected: Severity | None
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Decorrelation(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("zero", torch.tensor(0.0))

        def forward(self, tokens: torch.Tensor):
            rows, dim, device = *tokens.shape[-2:], {device}
            eye = torch.eye(dim, device=device)
            return tokens.pow(2) * (1.0 - eye)

    def tried(loss_device):
        loss = Decorrelation().to(loss_device)
        return loss(torch.randn(6, 2, 256, 256))
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("moved", "expected"), [('.to("cpu")', None), (".to(device)", Severity.WARNING)]
)
def test_a_part_of_what_was_moved_lies_there_too(moved: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def cached(vae, batch, device: torch.device):
        latents = vae.encode(batch)
        latents = latents{moved}
        for at, item in enumerate(batch):
            video = latents[at : at + 1]
            history = torch.zeros((1, video.shape[1]), dtype=video.dtype)
            item.save(torch.cat([video[:, :, 0], history]))
    """
    assert severity("DEV521", source) is expected


def test_a_number_that_is_moved_by_hand() -> None:
    source = """
    import torch

    class Sampler:
        def g(self, t):
            t = torch.tensor(t)
            return 10**t

        def step(self, x: torch.Tensor, t):
            turned = torch.tensor(self.turned(x.cpu().numpy())).to(x.device)
            score = turned * self.norm(t)
            scale = self.g(t).to(score.device)
            return torch.ones_like(score) * scale + score
    """
    assert severity("DEV521", source) is None


@pytest.mark.parametrize(
    ("made", "expected"),
    [("torch.ones(n, 3)", None), ("torch.ones(n, 3, device=self.device)", Severity.WARNING)],
)
def test_arguments_that_are_handed_on_from_the_cpu(made: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Metric(nn.Module):
        def compute(self, n):
            return self._all({made})

        def _all(self, precisions: torch.Tensor):
            return self._mean(precisions * 2)

        def _mean(self, found: torch.Tensor):
            return torch.zeros(2, 3) + found
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(("helper", "expected"), [("cuda", None), ("same", Severity.WARNING)])
def test_a_helper_that_moves_where_there_is_a_gpu(helper: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    def cuda(x):
        if torch.cuda.is_available():
            return x.to(torch.device("cuda"))
        return x

    def same(x):
        return x

    class Sampler(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.mean = nn.Linear(n, n)

        def forward(self, x, noise=None):
            mean = self.mean(x)
            noise = {helper}(torch.randn(*mean.shape)) if noise is None else noise
            return mean + noise
    """
    assert severity("DEV521", source) is expected


TABLE = (
    HEAD + "class Positions(nn.Embedding):\n    def fill(self, n, dim):\n"
    "        rows = self.table(n, dim)\n"
    "        self.weight = nn.Parameter(rows.to(self.weight.device))\n\n"
    "    @staticmethod\n    def table(n, dim):\n        half = dim // 2\n"
    "        {number} = 3.0 / (half - 1)\n"
    "        rows = torch.exp(torch.arange(half) * -{number})\n        if dim % 2 == 1:\n"
    "            rows = torch.cat([rows, torch.zeros(n, 1)], dim=1)\n        return rows\n\n"
    "    def forward(self, ids):\n        self.fill(4, self.embedding_dim)\n"
    "        return super().forward(ids)\n"
)


@pytest.mark.parametrize("number", ["step", "rows"])
def test_a_number_whose_name_is_bound_to_a_tensor_later(number: str) -> None:
    assert not findings("DEV521", TABLE.format(number=number))


@pytest.mark.parametrize("kind", ["dtype", "x.type()"])
def test_a_variable_may_name_a_type_with_its_device(kind: str) -> None:
    source = f"""
    import torch
    from torch import nn

    class Head(nn.Module):
        def forward(self, x, dtype):
            grid = torch.arange(x.shape[1]).type({kind})
            return x + grid
    """
    assert severity("DEV521", source) is None


def test_a_copy_of_a_tensor_lies_where_the_tensor_does() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor, y: torch.Tensor):
            return self.net(x) - torch.tensor(y, dtype=torch.long){part}
    """
    assert severity("DEV521", source.format(part="")) is None
    assert severity("DEV521", source.format(part=" + torch.ones(3)")) is Severity.WARNING


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [("torch.normal(0, scale * 0.1)", None),
     ("torch.normal(x, 0.1)", None),
     ("torch.normal(0.0, 0.1, (3, 4))", Severity.ERROR),
     ("torch.normal(0.0, 0.1, size=(3, 4))", Severity.ERROR)],
)  # fmt: skip
def test_numbers_drawn_around_tensors_lie_beside_them(
    drawn: str, expected: Severity | None
) -> None:
    source = f"""
    import torch

    def noisy(x, scale):
        x, scale = torch.tensor(x).to("cuda"), scale.to("cuda")
        return x + {drawn}
    """
    assert severity("DEV521", source) is expected
