"""`torch.save` and `torch.load`, pickle, copies, and taking a wrapper apart."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import torch

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.probe import DoesNotApply, Probe, Subject, Wrong
from tensortrail.doctor.subclass.words import Verdict

USE, ORDER = "torch.save and torch.load", 5


def _saved_and_loaded(weights_only: bool, **asked: Any) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        tensor = subject.tensor()
        wanted = looks.look(tensor)
        file = io.BytesIO()
        torch.save({"weight": tensor}, file)
        file.seek(0)
        got = torch.load(file, weights_only=weights_only, **asked)["weight"]
        subject.own_memory(subject.same(got, wanted, asked.get("map_location", "")), tensor)

    return run


def _loaded_to_meta(subject: Subject) -> None:
    tensor = subject.tensor()
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    got = torch.load(file, weights_only=False, map_location="meta")
    subject.of_shape(got, tuple(tensor.shape), "meta")


def _pickled(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    for inner in looks.inner_tensors(tensor).values():
        _plain_pickles(inner)
    subject.same(pickle.loads(pickle.dumps(tensor)), wanted)


def _plain_pickles(inner: torch.Tensor) -> None:
    try:
        pickle.loads(pickle.dumps(inner))
    except Exception as error:
        raise DoesNotApply(f"torch cannot pickle a plain {inner.dtype} tensor: {error}") from None


def _deep_copied(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    subject.own_memory(subject.same(copy.deepcopy(tensor), wanted), tensor)


def _taken_apart(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    if not hasattr(tensor, "__tensor_flatten__"):
        raise Wrong(Verdict.RAISES, "has no __tensor_flatten__")
    names, context = tensor.__tensor_flatten__()
    missing = [name for name in names if not isinstance(getattr(tensor, name, None), torch.Tensor)]
    if missing:
        raise Wrong(Verdict.WRONG_VALUES, f"names {missing[0]}, which is not a tensor")
    inner = {name: getattr(tensor, name) for name in names}
    unflatten: Any = getattr(subject.kind, "__tensor_unflatten__", None)
    if unflatten is None:
        raise Wrong(Verdict.RAISES, "has no __tensor_unflatten__")
    built = unflatten(inner, context, tensor.size(), tensor.stride())
    subject.same(built, wanted)


PROBES = [
    Probe("save, load(weights_only=True)", _saved_and_loaded(True),
          "the file can be written, and not be read without trusting it (no safe global)"),
    Probe("save, load(weights_only=False)", _saved_and_loaded(False),
          "what is read is not what was saved"),
    Probe("load(map_location=cpu)", _saved_and_loaded(False, map_location="cpu"),
          "a file written on a GPU cannot be read without one"),
    Probe("load(map_location=meta)", _loaded_to_meta,
          "the wrapper says another device than what is in it lies on", ("NEW303",)),
    Probe("pickle", _pickled, "the weight cannot be sent to another process"),
    Probe("deepcopy", _deep_copied, "a copied model shares or loses its weights"),
    Probe("__tensor_flatten__ and back", _taken_apart,
          "tools that look inside (compile, offload, tensortrail trace) see nothing there"),
]  # fmt: skip
