"""What a simulated tensor does when Python reads its values: the host has to wait for them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.lacks import NotShared
from tensortrail.tracer.rehearsal.tensor.answers import answers

NOT_SHARED = (
    "the memory of a simulated device lies on the host: it cannot be given to other libraries for "
    "GPUs in a rehearsal"
)


class HostReads(Tensor):  # type: ignore[misc]
    """The part of `SimTensor` that does so."""

    inner: Tensor
    index: int

    @answers(Tensor.numpy)
    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.inner.detach().numpy(force=True)
        raise TypeError(
            f"can't convert cuda:{self.index} device type tensor to numpy. Use Tensor.cpu() to "
            "copy the tensor to host memory first."
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    @answers(Tensor.tolist)
    def tolist(self) -> Any:
        return state.host_values(self).tolist()

    @answers(Tensor.item)
    def item(self) -> Any:
        return state.host_values(self).item()

    def __bool__(self) -> bool:
        return bool(state.host_values(self))

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return int(state.host_values(self).__index__())

    def __dlpack__(self, **_: Any) -> Any:
        raise NotShared(NOT_SHARED)

    @property
    def __cuda_array_interface__(self) -> Any:
        raise NotShared(NOT_SHARED)

    def __format__(self, spec: str) -> str:
        if self.dim() == 0:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any().item())
