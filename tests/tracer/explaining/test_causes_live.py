"""Errors of the torch at hand lead to their causes: its wording drifts, the table must follow."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tensortrail.tracer.explaining.causes import match_chain

torch = pytest.importorskip("torch")


def meta() -> Any:
    return torch.empty(3, 3, device="meta")


def plain() -> Any:
    return torch.ones(3, 3)


def fake_mix() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        torch.empty(3, 3, device="meta") + torch.empty(3, 3)


def fake_value() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        torch.empty(3).sum().item()


def compiled_mix() -> None:
    torch.compile(lambda a, b: a + b, backend="eager", fullgraph=True)(plain(), meta())


def exported_mix() -> None:
    torch.export.export(torch.nn.Linear(3, 3, device="meta"), (plain(),))


def wrapper() -> Any:
    class Wrapper(torch.Tensor):  # type: ignore[name-defined,misc]
        @staticmethod
        def __new__(cls, inner: Any) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, *arguments: Any) -> Any:
            raise NotImplementedError

    return Wrapper(plain())


def load_into(module: Any, state: dict[str, Any]) -> None:
    module.load_state_dict(state)


LINEAR = torch.nn.Linear
FAILING: list[tuple[Callable[[], Any], str]] = [
    (lambda: meta() + plain(), "meta-tensor-meets-real-tensor"),
    (lambda: torch.cat([plain(), meta()]), "meta-tensor-meets-real-tensor"),
    (
        lambda: torch.nn.functional.layer_norm(plain(), (3,), meta()[0]),
        "meta-tensor-meets-real-tensor",
    ),
    (
        lambda: torch.nn.functional.scaled_dot_product_attention(plain(), meta(), plain()),
        "meta-tensor-meets-real-tensor",
    ),
    (lambda: meta().to("cpu"), "meta-tensor-copied"),
    (lambda: plain().copy_(meta()), "meta-tensor-copied"),
    (lambda: LINEAR(3, 3, device="meta").to("cpu"), "module-moved-off-meta"),
    (lambda: meta().sum().item(), "value-read-from-meta-tensor"),
    (lambda: torch.equal(meta(), meta()), "value-read-from-meta-tensor"),
    (lambda: plain()[meta() > 0], "value-read-from-meta-tensor"),
    (lambda: meta().pin_memory(), "pinning-refused"),
    (lambda: setattr(plain(), "data", meta()), "data-of-another-kind-assigned"),
    (lambda: setattr(plain(), "grad", meta()), "gradient-on-another-device"),
    (fake_mix, "compiled-graph-mixes-devices"),
    (fake_value, "value-read-while-capturing"),
    (compiled_mix, "compiled-graph-mixes-devices"),
    (exported_mix, "compiled-graph-mixes-devices"),
    (lambda: wrapper().untyped_storage().data_ptr(), "wrapper-tensor-has-no-storage"),
    (lambda: wrapper().untyped_storage().resize_(0), "wrapper-tensor-has-no-storage"),
    (lambda: plain().to_sparse().untyped_storage(), "wrapper-tensor-has-no-storage"),
    (
        lambda: load_into(LINEAR(2, 2), {"_orig_mod.weight": plain()}),
        "wrapper-prefix-in-keys",
    ),
    (
        lambda: load_into(LINEAR(3, 3, bias=False), {"weight": torch.ones(0)}),
        "saved-without-gathering",
    ),
]


@pytest.mark.parametrize(("fails", "name"), FAILING, ids=lambda x: x if isinstance(x, str) else "")
def test_an_error_of_this_torch_has_a_cause(fails: Callable[[], Any], name: str) -> None:
    with pytest.raises(Exception) as caught:
        fails()
    hits = [hit for _, hit in match_chain(caught.value) if hit]
    assert [hit.cause.name for hit in hits][:1] == [name]


@pytest.mark.parametrize(
    "fails",
    [
        lambda: plain() @ torch.ones(4, 4),
        lambda: plain() + torch.ones(4),
        lambda: plain()[7],
        lambda: plain().sum().backward(),
        lambda: LINEAR(2, 2).load_state_dict({"weight": plain()}),
        lambda: torch.load("nowhere.pt"),
        lambda: copy.deepcopy(plain().requires_grad_() * 2),
        lambda: pickle.dumps(lambda: None),
        lambda: torch.zeros(2, dtype=torch.int64).softmax(0),
    ],
)
def test_other_errors_of_this_torch_have_none(fails: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as caught:
        fails()
    assert [hit for _, hit in match_chain(caught.value)] == [None] * len(match_chain(caught.value))


def test_files_torch_refuses_have_a_cause(tmp_path: Path) -> None:
    broken, foreign = tmp_path / "broken.pt", tmp_path / "foreign.pt"
    broken.write_bytes(b"PK\x03\x04 and no archive")
    torch.save(SimpleNamespace(a=1), foreign)
    for file, name in (
        (broken, "torch-file-broken"),
        (foreign, "checkpoint-holds-unknown-objects"),
    ):
        with pytest.raises(Exception) as caught:
            torch.load(file, weights_only=True)
        [(_, hit)] = match_chain(caught.value)
        assert hit is not None
        assert hit.cause.name == name
