"""What readers of real trees found wrong of places: silent or a note, with a neighbour that is
still reported."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.findings import Severity
from tensortrail.rules import all_rules
from tests.rules.devices.test_on_the_cpu import severity


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


@pytest.mark.parametrize(
    ("path", "expected"),
    [("package/transforms/pairs.py", Severity.NOTE), ("package/pairs.py", Severity.WARNING)],
)
def test_modules_among_transforms_prepare_data(path: str, expected: Severity) -> None:
    source = """
    import torch
    from torch import nn

    class Centred(nn.Module):
        def forward(self, rows: torch.Tensor):
            return rows + torch.ones(3)
    """
    assert severity("DEV521", source, path) is expected


@pytest.mark.parametrize(
    ("there", "expected"),
    [("rows", Severity.NOTE), ("rows.to(device)", Severity.WARNING)],
)
def test_beside_an_argument_of_a_plain_function(there: str, expected: Severity) -> None:
    source = f"""
    import torch

    def moved(rows: torch.Tensor, device: torch.device):
        return torch.cat([{there}, torch.zeros(3)])

    def blank(rows: torch.Tensor):
        return torch.zeros(3, device=rows.device)
    """
    assert severity("DEV521", source) is expected


def test_a_type_that_is_asked_for() -> None:
    source = """
    import torch

    def sigma(t: torch.Tensor, low: float):
        if not type(t) == torch.Tensor:
            return torch.tensor([t, low])
        return low * t
    """
    assert severity("DEV531", source) is None


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


@pytest.mark.parametrize(("library", "expected"), [("paddle", None), ("torch", Severity.ERROR)])
def test_tensors_of_another_library(library: str, expected: Severity | None) -> None:
    source = f"""
    import {library}

    def counted(inputs):
        return inputs["rows"].cuda(0).numpy().sum()
    """
    assert severity("DEV503", source) is expected


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
