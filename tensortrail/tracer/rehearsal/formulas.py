"""The formulas of autograd: C++ that takes the tensors it works on for the host's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch._C import _current_autograd_node

from tensortrail.tracer.rehearsal.tensor import SimTensor

SAVED = "_saved_"


def home(last: int | None) -> int | None:
    """Where the zeros, ones and indices belong that the running formula makes for itself."""
    node = _current_autograd_node()
    if node is None or isinstance(node, torch.autograd.function.BackwardCFunction):
        return None  # of Python, which says where things are
    known = [each for each in _known(node) if isinstance(each, Tensor)]
    if not known:
        return last
    return next((each.index for each in known if isinstance(each, SimTensor)), None)


def _known(node: Any) -> Iterator[Any]:
    """The tensors it keeps, and those whose gradients it makes."""
    for name in dir(node):
        if name.startswith(SAVED):
            with suppress(RuntimeError):  # it was given free
                value = getattr(node, name)
                yield from value if isinstance(value, (list, tuple)) else (value,)
    for following, _ in node.next_functions:
        yield getattr(following, "variable", None)
