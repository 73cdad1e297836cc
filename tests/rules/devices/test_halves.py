"""A call that leaves out half of what its neighbours are given, and one move that is left out."""

from __future__ import annotations

import textwrap

import pytest

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.findings import Severity
from tensortrail.rules import all_rules


def found(code: str, source: str) -> list[tuple[int, Severity]]:
    text = textwrap.dedent(source).encode()
    findings = judge("package/model.py", text, [all_rules()[code]()], open_project()).findings
    return [(each.site.line, each.severity) for each in findings]


def test_a_call_with_the_device_beside_one_with_both() -> None:
    source = """
    import torch

    def start(x, n, device, dtype):
        x = x.to(device=device, dtype=dtype)
        return x, torch.zeros(n, device=device)
    """
    assert found("DEV541", source) == [(6, Severity.WARNING)]
    assert not found("DEV541", source.replace("x.to(device=device, dtype=dtype)", "x.to(dtype)"))


def test_a_comparison_and_a_norm_have_no_dtype_to_lose() -> None:
    source = """
    import torch
    from torch import nn

    def start(n, device, dtype):
        kept = torch.rand(n, device=device) > 0.5
        norm = nn.LayerNorm(n, device=device)
        return torch.where(kept, torch.ones(n, device=device, dtype=dtype), 0), norm
    """
    assert all(severity is not Severity.WARNING for _, severity in found("DEV541", source))


@pytest.mark.parametrize("name", ["tensor", "as_tensor"])
def test_a_dtype_that_is_never_read(name: str) -> None:
    source = f"""
    import torch

    def values(device, dtype):
        return torch.{name}([0.0, 0.5, 1.0], device=device)
    """
    assert found("DEV527", source) == [(5, Severity.WARNING)]


def test_layers_that_are_kept_in_a_mapping() -> None:
    source = """
    import torch
    from torch import nn

    class Added(nn.Module):
        def add(self, name, rows, columns, weight):
            self.down[name] = nn.Linear(rows, 4, bias=False, device=weight.device)
            self.up[name] = nn.Linear(4, columns, bias=False)
    """
    assert found("DEV534", source) == [(8, Severity.WARNING)]


def test_what_a_tokenizer_gives_is_moved_by_whoever_is_given_a_device() -> None:
    source = """
    import torch

    def encode(tokenizer, text_encoder, prompt, device: torch.device):
        inputs = tokenizer(prompt, return_tensors="pt")
        return text_encoder(**inputs)[0].to(device)
    """
    assert found("DEV524", source) == [(6, Severity.NOTE)]
    for moved in (
        source.replace('"pt")', '"pt").to(device)'),
        source.replace("**inputs", "**{k: v.to(device) for k, v in inputs.items()}"),
        source.replace("**inputs", "**inputs, device=device"),
        source.replace("prompt, return", "prompt, device=device, return"),
        source.replace("text_encoder(**inputs)[0]", "tokenizer.pad(inputs).ids"),
    ):
        assert not found("DEV524", moved), moved


def test_a_device_that_the_callee_never_reads_is_not_missed() -> None:
    source = """
    def doubled(data, device="cuda"):
        return [each.to(device) * 2 for each in data]

    def train(model, data, device):
        model.to(device)
        return [model(each.to(device)) for each in doubled(data)]
    """
    assert found("DEV550", source) == [(7, Severity.WARNING)]
    assert not found("DEV550", source.replace("each.to(device) * 2", "each * 2"))


def test_the_fourth_of_four_that_are_moved() -> None:
    source = """
    def flat(a, b, c, d, device):
        a = a.reshape(-1).to(device)
        b = b.reshape(-1).to(device)
        c = c.reshape(-1).to(device)
        d = d.reshape(-1)
        return a, b, c, d
    """
    assert found("DEV529", source) == [(6, Severity.WARNING)]
    fewer = source.replace("        b = b.reshape(-1).to(device)\n", "")
    assert found("DEV529", fewer) == [(5, Severity.NOTE)]
    inside = source.replace("d.reshape(-1)", "(d.to(device) + 1).reshape(-1)")
    assert all(severity is Severity.NOTE for _, severity in found("DEV529", inside))


def test_a_name_that_is_bound_to_itself_beside_one_that_is_moved_is_a_warning() -> None:
    source = "def compared(a, b, device):\n    a, b = a.to(device), b\n    return a.like(b)\n"
    assert found("DEV529", source) == [(2, Severity.WARNING)]
    other = source.replace("a, b = a.to(device), b\n", "a, c = a.to(device), b\n")
    assert not found("DEV529", other)
