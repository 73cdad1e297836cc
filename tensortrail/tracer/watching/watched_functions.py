"""This table says which functions the mode acts on, and which watch looks at the calls of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C import TensorBase

from tensortrail.tracer.watching.graph_watches import AVERAGES, CUTS, IN_PLACE, SWITCHES, Freezes
from tensortrail.tracer.watching.memory_watches import (
    GIVES_STORAGE,
    Address,
    DataSwap,
    Resize,
    Share,
)
from tensortrail.tracer.watching.move_watches import MOVES
from tensortrail.tracer.watching.value_watches import SHARES, Copy, Creation, OtherNumbers, SameType
from tensortrail.tracer.watching.watch import Args, Kwargs, Watch

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder


class StandIn(Watch):
    """A function that stands where torch has one of its own: what is told is told of torch's."""

    def __init__(self, original: Any) -> None:
        self._original, self._watch = original, WATCHED[original]
        self.looks_before = self._watch.looks_before

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return self._watch.before(recorder, self._original, args, kwargs)

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None:
        self._watch.after(recorder, self._original, args, kwargs, before, result)


def _table() -> dict[Any, Watch]:
    made: dict[Any, Watch] = {}

    def watch(kind: Watch, owner: Any, names: str) -> None:
        for name in names.split():
            if (func := getattr(owner, name, None)) is not None:
                made[func] = kind

    watch(
        Creation(),
        torch,
        "tensor as_tensor asarray scalar_tensor zeros ones full empty empty_strided empty_permuted"
        " rand randn randint randperm arange linspace logspace eye tril_indices triu_indices range"
        " complex polar normal empty_like zeros_like ones_like full_like rand_like randn_like",
    )
    watch(Creation(), Tensor, "new_empty new_empty_strided new_zeros new_ones new_full new_tensor")
    watch(SameType(), Tensor, "clone contiguous")
    watch(SameType(), torch, "clone")
    watch(SHARES, Tensor, "detach")
    watch(SHARES, torch, "detach")
    watch(MOVES, TensorBase, "to cpu cuda xpu mtia ipu type pin_memory")
    watch(OtherNumbers(), Tensor, "half float double bfloat16")
    watch(Copy(), Tensor, "copy_")
    made[TensorBase.data.__set__] = DataSwap()
    watch(Resize(), Tensor, "resize_ resize_as_")
    watch(Share(), Tensor, "share_memory_")
    watch(Address(), Tensor, "data_ptr")
    watch(GIVES_STORAGE, Tensor, "untyped_storage")
    watch(
        CUTS,
        Tensor,
        "item tolist numpy __float__ __int__ __array__ argmax argmin argsort long int bool short"
        " gt ge lt le eq ne __gt__ __ge__ __lt__ __le__ __eq__ __ne__",
    )
    watch(AVERAGES, Tensor, "lerp_ add_")
    watch(
        IN_PLACE,
        Tensor,
        "__iadd__ __isub__ __imul__ __itruediv__ __ipow__ __setitem__ sub_ mul_ div_ pow_ clamp_"
        " relu_ sigmoid_ tanh_ exp_ sqrt_ masked_fill_ zero_ fill_",
    )
    watch(IN_PLACE, torch, "relu_ sigmoid_ tanh_ clamp_")
    watch(CUTS, torch, "argmax argmin argsort gt ge lt le eq ne")
    made[TensorBase.data.__get__] = CUTS
    watch(Freezes(), TensorBase, "requires_grad_")
    made[TensorBase.requires_grad.__set__] = made[TensorBase.requires_grad_]
    watch(SWITCHES, torch._C, "_set_grad_enabled")
    return made


WATCHED: dict[Any, Watch] = _table()
