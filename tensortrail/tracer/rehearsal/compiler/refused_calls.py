"""The compiler may refuse to trace a call; this tells which operands met there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from torch._subclasses import fake_tensor
from torch.fx import Node
from torch.utils._pytree import tree_map_only

from tensortrail.tracer.noticing.refused_graphs import called

Told = Callable[[Any, Any, Any, Exception], None]
MISMATCH = getattr(fake_tensor, "FakeTensorDeviceMismatchError", ())
"""Before torch 2.12 a RuntimeError, which only its text tells from others."""
TEXT = "found two different devices"


class Refusals(threading.local):
    def __init__(self) -> None:
        self.real: dict[int, tuple[Tensor, Tensor]] = {}
        """`id` of a stand-in -> it, and the tensor it was made of."""
        self.met: tuple[Any, Any, Any] | None = None

    @contextmanager
    def traced(self, told: Told) -> Iterator[None]:
        """One function is traced. The exception that leaves is another than the one that met."""
        before, self.real, self.met = self.real, {}, None
        try:
            yield
        except Exception as error:
            if self.met is not None:
                told(*self.met, error)
            raise
        finally:
            self.real, self.met = before, None

    def stands_in(self, fake: Any, real: Any) -> None:
        if isinstance(fake, Tensor):
            self.real[id(fake)] = (fake, real)

    @contextmanager
    def calling(self, node: Node, args: Any, kwargs: Any) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if not _is_mismatch(error.__cause__ or error):
                raise
            self.met = (called(node.target), self._of_real(args), self._of_real(kwargs))
            raise

    def _of_real(self, values: Any) -> Any:
        return tree_map_only(Tensor, lambda fake: self.real.get(id(fake), (0, fake))[1], values)


def _is_mismatch(error: BaseException) -> bool:
    return isinstance(error, MISMATCH) or TEXT in str(error)
