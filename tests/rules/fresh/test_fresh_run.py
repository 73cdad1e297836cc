"""Rules about fresh tensors, watching real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.findings import Confidence, Severity
from tests.rules.recorded import WRAPPER, watched

ANSWER = "    @classmethod\n    def answer(cls, func, args, kwargs):\n"
NEW_EMPTY = "        if func is torch.ops.aten.new_empty.default:\n"


def test_a_factory_drops_the_device(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        WRAPPER
        + ANSWER
        + NEW_EMPTY
        + """\
            return cls(torch.empty(args[1]))
weight = Packed(torch.ones(4))
weight.new_empty(4)
weight.new_empty(4, device="meta")  # flagged
weight.clone().new_empty(4, device="meta")
""",
        "NEW301",
    )
    finding = seen.only
    assert (
        "returns a tensor on cpu from `Tensor.new_empty`, although the caller asks for meta"
        in finding.message
    )
    assert finding.confidence is Confidence.HIGH
    assert [site.line for site in finding.siblings] == [finding.site.line + 1]
    assert finding.trail[-1].message == "the answer is given here"
    assert finding.trail[-1].site.function == "Packed.__torch_dispatch__"


def test_a_factory_keeps_its_type_on_one_device_only(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        WRAPPER
        + ANSWER
        + NEW_EMPTY
        + """\
            made = torch.empty(args[1], device=kwargs.get("device"))
            return cls(made) if made.is_meta else made
weight = Packed(torch.ones(4))
weight.new_empty(4, device="meta")
weight.new_empty(4, device="cpu")  # flagged
""",
        "NEW301",
    )
    assert (
        "its own type from `Tensor.new_empty` on meta, but another type on cpu" in seen.only.message
    )


def test_a_factory_drops_the_dtype(tmp_path: Path) -> None:
    source = (
        WRAPPER
        + ANSWER
        + NEW_EMPTY
        + "            return cls(args[0].inner.new_empty(args[1], device=kwargs.get('device')))\n"
        + "weight = Packed(torch.ones(4))\n"
        + "weight.new_empty(4, dtype=torch.float16)  # flagged\n"
    )
    told = watched(tmp_path, source, "NEW301").only.message
    assert "returns torch.float32 from" in told
    assert told.endswith("the caller asks for torch.float16")


@pytest.mark.parametrize("code", ["NEW301", "NEW303", "NEW304"])
def test_a_wrapper_without_a_fault(tmp_path: Path, code: str) -> None:
    source = (
        WRAPPER
        + """\
weight = torch.nn.Parameter(Packed(torch.ones(4, 4)))
for device in ("cpu", "meta"):
    weight.new_empty(4, device=device, dtype=torch.float16)
    torch.empty_like(weight, device=device).copy_(weight)
    torch.zeros_like(weight)
weight.detach().clone().contiguous().to("meta")
layer = torch.nn.Linear(4, 4)
layer.weight = weight
layer.to("meta")
"""
    )
    assert not watched(tmp_path, source, code).found


def test_a_wrapper_says_another_device(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        WRAPPER
        + """\
weight = Packed(torch.ones(4, device="meta"), device="cpu")
print(weight.device)
twice = weight.detach()  # flagged
""",
        "NEW303",
    )
    assert "`Packed` says it is on cpu, but its inner tensors are on meta" in seen.only.message
    assert seen.only.trail[-1].message == "the wrapper is made here"
    made = seen.program.read_text().splitlines()[seen.only.trail[-1].site.line - 1]
    assert "_make_wrapper_subclass" in made


def test_a_scale_on_the_cpu_is_no_fault(tmp_path: Path) -> None:
    source = WRAPPER.replace('["inner"]', '["inner", "scale"]') + (
        "    scale = torch.tensor(2.0)\n"
        "weight = Packed(torch.ones(4, device='meta'))\n"
        "weight.detach().clone()\n"
    )
    assert not watched(tmp_path, source, "NEW303").found


@pytest.mark.parametrize(
    ("op", "severity"),
    [("clone", Severity.ERROR), ("detach", Severity.ERROR), ("new_empty", Severity.ERROR)],
)
def test_an_answer_of_another_type(tmp_path: Path, op: str, severity: Severity) -> None:
    call = f"weight.{op}({'4' if op == 'new_empty' else ''})"
    seen = watched(
        tmp_path,
        WRAPPER
        + ANSWER
        + f"""\
        if func is torch.ops.aten.{op}.default:
            return func(args[0].inner, *args[1:], **kwargs)
weight = Packed(torch.ones(4))
{call}  # flagged
""",
        "NEW304",
    )
    assert f"`Packed` answers `Tensor.{op}` with a plain `Tensor`" in seen.only.message
    assert seen.only.severity is severity
    assert seen.only.confidence is (Confidence.MEDIUM if op == "new_empty" else Confidence.HIGH)
    assert seen.only.trail[-1].site.function == "Packed.__torch_dispatch__"


PLAIN_COPY = """\
        if func is torch.ops.aten._to_copy.default:
            return func(args[0].inner, *args[1:], **kwargs)
weight = Packed(torch.ones(4))
"""


def test_a_move_that_loses_the_type(tmp_path: Path) -> None:
    source = WRAPPER + ANSWER + PLAIN_COPY + "there = weight.to('meta')  # flagged\n"
    seen = watched(tmp_path, source, "NEW304")
    assert "`Packed` answers `Tensor.to` with a plain `Tensor`" in seen.only.message
    assert seen.only.severity is Severity.ERROR


@pytest.mark.parametrize("asked", ["torch.float16", "'meta', torch.float16", "dtype=torch.half"])
def test_other_numbers_may_well_be_plain(tmp_path: Path, asked: str) -> None:
    source = WRAPPER + ANSWER + PLAIN_COPY + f"plain = weight.to({asked})\n"
    assert not watched(tmp_path, source, "NEW304").found


def test_random_numbers_of_its_shape_may_be_plain(tmp_path: Path) -> None:
    source = (
        WRAPPER
        + ANSWER
        + "        if func is torch.ops.aten.zeros_like.default:\n"
        + "            return func(args[0].inner)\n"
        + "momentum = torch.zeros_like(Packed(torch.ones(4)))\n"
        + "assert type(momentum) is torch.Tensor\n"
    )
    assert not watched(tmp_path, source, "NEW304").found


def test_an_op_that_the_class_does_not_know(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        WRAPPER
        + ANSWER
        + """\
        if func is torch.ops.aten.new_empty.default:
            raise NotImplementedError(f"{cls.__name__} dispatch: no {func}")
weight = Packed(torch.ones(4))
try:
    weight.sum().new_empty(3)  # flagged
except NotImplementedError:
    torch.ones(3)
""",
        "NEW304",
    )
    assert "`Packed` does not answer `Tensor.new_empty`" in seen.only.message
    assert "dispatch: no aten.new_empty.default" in seen.only.message
    assert seen.only.severity is Severity.NOTE


def test_a_library_class_that_loses_its_type(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    seen = watched(
        tmp_path,
        """\
        import torch
        from torchao.float8.float8_training_tensor import LinearMMConfig
        from torchao.float8.fsdp_utils import WeightWithDynamicFloat8CastTensor as Weight
        weight = Weight(torch.ones(8, 8), LinearMMConfig(), torch.float8_e4m3fn)
        copy = weight.new_empty((8, 8), device="cpu")  # flagged
        copy.copy_(weight.detach())
        """,
        "NEW304",
    )
    assert "WeightWithDynamicFloat8CastTensor" in seen.only.message
    assert "fsdp_utils.py" in seen.only.trail[-1].site.file


def test_a_buffer_that_no_checkpoint_fills(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        """\
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.head = torch.nn.Linear(4, 4)
                self.register_buffer("scale", torch.ones(4), persistent=False)
            def forward(self, x):
                return self.head(x) * self.scale  # flagged
        weights = Net().state_dict()
        with torch.device("meta"):
            net = Net()
        net.to_empty(device="cpu")
        net.load_state_dict(weights)
        net(torch.ones(1, 4))
        """,
        "NEW306",
    )
    finding = seen.only
    assert "reads `Net.scale`, which nothing has written to" in finding.message
    assert "program.py:12" in finding.message
    assert (finding.severity, finding.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert "12: Net.scale made on cpu by torch.empty_like" in seen.steps
    assert "as a buffer with `persistent=False`, it is in no state dict" in finding.message
    assert "as the constructor of `Net` does" in str(finding.fixes)


def test_fresh_memory_without_a_name(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        "import torch\nfresh = torch.empty(4)\ntotal = fresh.sum()  # flagged\n",
        "NEW306",
    )
    assert (seen.only.severity, seen.only.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert "since `torch.empty` at program.py:2" in seen.only.message


@pytest.mark.parametrize(
    "use",
    [
        "fresh.zero_(); fresh.sum()",
        "fresh[:] = 1; fresh.sum()",
        "fresh.copy_(torch.ones(4)); fresh.sum()",
        "torch.add(torch.ones(4), 1, out=fresh); fresh.sum()",
        "view = fresh.view(2, 2); view.fill_(1); fresh.sum()",
        "torch.nn.init.ones_(fresh); fresh.sum()",
        "fresh.numpy()[:] = 1; fresh.sum()",
        "fresh.shape, fresh.numel(), torch.zeros_like(fresh).sum()",
        "fresh = torch.empty(0); fresh.sum()",
        "layer = torch.nn.Linear(4, 4); layer(torch.ones(1, 4))",
        "cache = torch.nn.Buffer(fresh.view(2, 2)); cache[:1] = 1; cache[:1].sum()",
        "fresh[:2] = 1; fresh.narrow(0, 2, 2).copy_(torch.ones(2)); fresh.sum()",
        "layer = torch.nn.Linear(4, 4); held = layer.weight.untyped_storage()\n"
        "kept, n = layer.weight.detach().clone(), held.nbytes(); held.resize_(0)\n"
        "held.resize_(n); layer.weight.data.copy_(kept); layer(torch.ones(1, 4))",
        "other = torch.nn.Linear(4, 4); other.weight.data = torch.empty(4, 4)\n"
        "other.weight.untyped_storage().copy_(torch.ones(4, 4).untyped_storage())\n"
        "other(torch.ones(1, 4))",
        "layer = torch.nn.Linear(4, 4, device='meta').to_empty(device='cpu')\n"
        "layer.reset_parameters(); layer(torch.ones(1, 4))",
        "layer = torch.nn.Linear(4, 4, device='meta').to_empty(device='cpu')\n"
        "layer.load_state_dict(torch.nn.Linear(4, 4).state_dict()); layer(torch.ones(1, 4))",
    ],
)
def test_memory_written_before_it_is_read(tmp_path: Path, use: str) -> None:
    watched(tmp_path, f"import torch\nfresh = torch.empty(4)\n{use}\n", "NEW306")
