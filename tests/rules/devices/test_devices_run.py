"""Device rules, watching real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Confidence, Safety, Severity
from tensortrail.rules import Did
from tests.rules.recorded import runs_without_findings, watched

pytestmark = pytest.mark.long

HEAD = "import torch\nimport torch.nn.functional as F\n"


def test_a_linear_layer_on_meta_that_raises_nothing(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        def build():
            return torch.nn.Linear(8, 3, bias=False).to("meta")
        head = build()
        for _ in range(3):
            logits = head(torch.randn(4, 8))  # flagged
        """,
        "DEV502",
    )
    finding = seen.only
    assert finding.severity is Severity.ERROR
    assert finding.confidence is Confidence.HIGH
    assert "gives uninitialised memory on cpu" in finding.message
    assert "`Linear.weight` is on meta" in finding.message
    assert "was moved cpu -> meta by `Tensor.to` at program.py:3" in finding.message
    assert "3: Linear.weight moved cpu -> meta by Tensor.to (96 B)" in seen.steps


@pytest.mark.parametrize(
    "operation",
    ["x @ meta.T", "F.embedding(meta.long()[0], x)", "x[meta[0].long()]", "x.mul_(meta)"],
)
def test_operations_that_give_undefined_memory(tmp_path: Path, operation: str) -> None:
    source = (
        HEAD
        + "x = torch.ones(4, 8)\nmeta = torch.zeros(4, 8, device='meta')\n"
        + f"{operation}  # flagged\n"
    )
    assert watched(tmp_path, source, "DEV502").only.severity is Severity.ERROR


def test_what_comes_out_on_meta_is_a_note(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        table = torch.nn.Embedding(5, 3, device="meta")
        table(torch.tensor([1, 2]))  # flagged
        """,
        "DEV502",
    )
    assert seen.only.severity is Severity.NOTE
    assert "without values" in seen.only.message


def test_an_exception_that_ends_the_program(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.LayerNorm(8)
            def forward(self, x):
                return self.norm(x)  # flagged
        net = Net()
        net.to("meta")
        net(torch.randn(2, 8))
        """,
        "DEV502",
    )
    assert seen.error is not None
    assert seen.only.severity is Severity.ERROR
    assert "`net.norm.weight` and `net.norm.bias` are on meta" in seen.only.message
    assert "`Tensor.to` at program.py:9" in seen.only.message
    assert len(seen.timeline.events(Did.ERROR)) == 1


def test_an_exception_is_told_once_on_its_way_out(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        class Odd(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, gradient):
                return gradient + torch.ones(2, device="meta")  # flagged
        Odd.apply(torch.ones(2, requires_grad=True)).sum().backward()
        """,
        "DEV502",
    )
    assert len(seen.timeline.events(Did.ERROR)) == 1


def test_an_exception_that_the_program_handled_is_a_note(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        meta = torch.ones(2, device="meta")
        try:
            torch.ones(2) + meta  # flagged
        except RuntimeError:
            total = torch.ones(2)
        """,
        "DEV502",
    )
    assert (seen.only.severity, seen.only.confidence) == (Severity.NOTE, Confidence.LOW)


@pytest.mark.parametrize(
    "operation",
    [
        "meta[torch.tensor([0, 1])]",
        "meta * torch.tensor(2.0)",
        "meta.copy_(x)",
        "torch.empty_like(x, device='meta')",
        "torch.nn.Embedding(4, 8, device='meta').load_state_dict({'weight': x})",
        "meta @ meta.T",
        "x @ x.T",
        "torch.cat([x, x]).to('meta')",
    ],
)
def test_legal_meetings(tmp_path: Path, operation: str) -> None:
    source = f"{HEAD}x = torch.ones(4, 8)\nmeta = torch.zeros(4, 8, device='meta')\n{operation}\n"
    assert not watched(tmp_path, source, "DEV502").found


def test_a_module_without_data_is_moved(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        with torch.device("meta"):
            model = torch.nn.Linear(2, 2)
        π = "cpu"
        model = model.to(π)  # flagged
        """,
        "DEV507",
    )
    assert "`Linear.weight` is on meta" in seen.only.message
    assert "at program.py:3" in seen.only.message
    (fix,) = seen.only.fixes
    assert fix.safety is Safety.DISPLAY
    assert "model = model.to_empty(device=π)  # flagged\n" in seen.fixed


def test_a_module_whose_state_dict_lacked_a_weight_is_moved(tmp_path: Path) -> None:
    program = """\
        import torch
        with torch.device("meta"):
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2))
        state = {"0.weight": torch.ones(2, 2), "0.bias": torch.ones(2), "1.weight": torch.ones(2)}
        model.load_state_dict(state, strict=False, assign=True)
        FILLED
        model.to("cpu")  # flagged
        """
    seen = watched(tmp_path, program.replace("FILLED", ""), "DEV507")
    assert ".1.bias` is on meta; the state dict loaded at program.py:5 lacks" in seen.only.message
    (fix,) = seen.only.fixes
    assert "`to_empty` and `reset_parameters()` of `get_submodule('1')`" in fix.description
    filled = "model.get_submodule('1').to_empty(device='cpu').reset_parameters()"
    runs_without_findings(tmp_path, program.replace("FILLED", filled), "DEV507")


def test_a_file_that_lacks_a_weight_of_the_module(tmp_path: Path) -> None:
    for library in ("accelerate", "safetensors"):
        pytest.importorskip(library)
    program = """\
        import torch
        from accelerate import init_empty_weights, load_checkpoint_and_dispatch
        from safetensors.torch import save_file
        state = {"0.weight": torch.ones(2, 2), "0.bias": torch.ones(2), "1.bias": torch.ones(2)}
        save_file({**state, MORE}, folder + "/model.safetensors")
        with init_empty_weights():
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        path = folder + "/model.safetensors"
        model = load_checkpoint_and_dispatch(model, path, device_map={"": "cpu"})  # flagged
        """
    seen = watched(tmp_path, program.replace("MORE", ""), "DEV507")
    assert seen.only.message.endswith(
        "is on meta; model.safetensors, which is loaded there, has no `1.weight`"
    )
    (fix,) = seen.only.fixes
    assert "load a state dict with `1.weight`" in fix.description
    mended = program.replace("MORE", "'1.weight': torch.ones(2, 2)")
    runs_without_findings(tmp_path, mended, "DEV507")


def test_a_tensor_without_data_is_moved_or_copied(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        meta = torch.ones(2, device="meta")
        for _ in range(2):
            try:
                meta.cpu()  # flagged
            except NotImplementedError:
                pass
        torch.ones(2).copy_(meta)  # flagged
        """,
        "DEV507",
    )
    first, second = seen.found
    assert dict(first.evidence) == {"attempts": "2"}
    assert first.severity is Severity.NOTE
    assert second.severity is Severity.ERROR
    assert "made on meta by torch.ones" in "".join(step.message for step in second.trail)
    assert not first.fixes
    assert not second.fixes


def test_memory_made_and_filled(tmp_path: Path) -> None:
    watched(
        tmp_path,
        """\
        import torch
        model = torch.nn.Linear(2, 2, device="meta")
        model = model.to_empty(device="cpu")
        model.load_state_dict(torch.nn.Linear(2, 2).state_dict())
        model(torch.ones(1, 2)).sum().item()
        """,
        "DEV507",
    )


@pytest.mark.parametrize(
    "question",
    ["meta.item()", "meta.tolist()", "bool(meta)", "torch.equal(meta, meta)", "meta.nonzero()",
     "1 if meta > 0 else 2", "meta.numpy()", "float(meta)", "x[meta[0].long()]"],
)  # fmt: skip
def test_values_asked_of_meta(tmp_path: Path, question: str) -> None:
    source = (
        f"{HEAD}x = torch.ones(1)\nmeta = torch.ones(1, device='meta')\n{question}  # flagged\n"
    )
    seen = watched(tmp_path, source, "DEV508")
    assert "on meta" in seen.only.message
    assert seen.only.severity is Severity.ERROR


@pytest.mark.parametrize(
    "question",
    ["meta.shape", "meta.is_meta", "meta is meta", "repr(meta)", "meta.numel()", "len(meta)",
     "x.item()", "torch.equal(x, x)", "list(meta)", "meta.to('meta')"],
)  # fmt: skip
def test_questions_that_need_no_values(tmp_path: Path, question: str) -> None:
    source = f"{HEAD}x = torch.ones(1)\nmeta = torch.ones(1, device='meta')\n{question}\n"
    assert not watched(tmp_path, source, "DEV508").found


def test_a_value_that_was_computed_of_weights_on_meta(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        net = torch.nn.Linear(2, 1, device="meta")
        total = sum(each.sum() for each in net.parameters())
        total.item()  # flagged
        """,
        "DEV508",
    )
    comes = "it comes from `total = sum(each.sum() for each in net.parameters())` at program.py:3"
    assert comes in seen.only.message
