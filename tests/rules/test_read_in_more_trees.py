"""What readers of more real trees found harmless or wrong, beside what is still reported."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("after", "expected"),
    [("return model(x)", Severity.NOTE), ("model.save_pretrained('merged')", Severity.WARNING)],
)
def test_a_merged_model_that_is_only_used_may_stay_wrapped(after: str, expected: Severity) -> None:
    source = f"""
    from peft import PeftModel

    def merged(base, folder, x):
        model = PeftModel.from_pretrained(base, folder)
        model.merge_and_unload()
        {after}
    """
    assert severity("DEV629", source) is expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [("handle_size()", Severity.NOTE), ("data.shape[0]", Severity.WARNING)],
)
def test_a_fake_may_be_given_a_handle(size: str, expected: Severity) -> None:
    source = f"""
    import torch

    @torch.library.register_fake("mine::frames")
    def frames(data: torch.Tensor):
        return torch.empty({size})
    """
    assert severity("NEW310", source) is expected


@pytest.mark.parametrize(("made", "expected"), [("torch.zeros(3)", None), ("{}", Severity.WARNING)])
def test_what_is_stored_into_a_tensor_is_copied(made: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def kept(rows, path):
        table = torch.tensor(rows)
        for i in range(len(rows)):
            out = {made}
            out[0] = table[i, :3]
            torch.save(out, path + str(i))
    """
    assert severity("STO207", source) is expected


@pytest.mark.parametrize(("size", "expected"), [("0, 0", None), ("4, 4", Severity.WARNING)])
def test_a_kernel_reads_nothing_of_what_is_empty(size: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    import triton

    @triton.jit
    def kernel(x, mask, size):
        pass

    def run(x: torch.Tensor):
        mask = torch.zeros({size})
        kernel[(1,)](x, mask, x.numel())
        return x.cuda()
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("waited", "expected"),
    [
        ("torch.cuda.synchronize(self.copies)", None),
        ("torch.cuda.current_stream().synchronize()", Severity.WARNING),
    ],
)
def test_another_method_may_wait_for_the_stream(waited: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    class Layers:
        def prefetch(self, layer):
            with torch.cuda.stream(self.copies):
                for weight in layer.parameters():
                    weight.data = weight.data.to("cuda", non_blocking=True)

        def ready(self):
            {waited}
    """
    assert severity("XFR605", source) is expected


@pytest.mark.parametrize(
    ("pixels", "expected"),
    [("torch.from_numpy(rows)", None), ("model(torch.from_numpy(rows).cuda())", Severity.WARNING)],
)
def test_a_default_may_stay_where_all_callers_are(pixels: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def scaled(x, mean=torch.tensor([0.5, 0.4, 0.3]).view(-1, 1, 1)):
        return x - mean

    def main(model, rows):
        return scaled({pixels}).cuda()
    """
    assert severity("DEV586", source) is expected


@pytest.mark.parametrize(("taken", "expected"), [("self.__dict__", None), ("kept", Severity.ERROR)])
def test_a_name_may_be_taken_back(taken: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Tile(nn.Module):
        def __init__(self, kept):
            super().__init__()
            self.scales = torch.ones(3)
            scales = {taken}.pop("scales")
            self.register_buffer("scales", scales)
    """
    assert severity("NEW321", source) is expected


@pytest.mark.parametrize(
    ("made", "expected"),
    [("other.up.weight.t()", Severity.NOTE), ("torch.ones(8, 8)", Severity.ERROR)],
)
def test_what_is_made_of_given_weights_lies_where_these_are(made: str, expected: Severity) -> None:
    source = f"""
    import torch
    from torch import nn

    class Joined(nn.Module):
        def __init__(self, other: nn.Module):
            super().__init__()
            up = {made}
            self.norm = nn.LayerNorm(8)
            self.joined = torch.einsum("ab,bc->ac", up, up)

        def forward(self, x):
            return self.norm(x) @ self.joined

    def run(other, x):
        return Joined(other).cuda()(x.cuda())
    """
    assert severity("OFF107", source) is expected
