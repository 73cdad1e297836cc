"""What is copied between simulated devices and the host, and who waits for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal.operations.operands import (
    inner_of,
    unwrapped,
)
from tensortrail.tracer.rehearsal.operations.results import Results
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

aten = torch.ops.aten


class Copies(Results):
    def _elsewhere(self, func: Any, args: Any, kwargs: dict[str, Any], home: int) -> Any:
        """What it makes lies on no simulated device: `empty_like(x, device="meta")`."""
        result = self.pinned.run(func, unwrapped(args), kwargs)
        if func is aten._to_copy.default and isinstance(result, Tensor) and not result.is_meta:
            if kwargs.get("non_blocking"):
                self.pending.add(self.pinned.hold(result), self.streams.queue(home))
            else:
                self.synchronized(home)
        return result

    def _put_on_the_host(self, func: Any, args: Any, kwargs: dict[str, Any], index: int) -> Any:
        """The indices are moved to the host first."""
        self.synchronized(index)
        return self.pinned.run(func, unwrapped(args), kwargs)

    def _copy(self, args: Any, kwargs: dict[str, Any]) -> Any:
        target, source = args[0], args[1]
        non_blocking = kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
        inner_of(target).copy_(inner_of(source))
        if not isinstance(target, SimTensor):
            if non_blocking and self.pinned.holds(target):
                self.pending.add(target, self.streams.queue(source.index))
            else:
                self.synchronized(source.index)
        elif isinstance(source, SimTensor):
            self.follows(target.index, source.index)
        elif non_blocking:
            self.sends(source, target.index)
        else:
            self.synchronized(target.index)
        return target

    def sends(self, source: Tensor, index: int) -> None:
        """From pageable memory torch waits until it is copied to where it is sent from."""
        if self.pinned.holds(source):
            self.pending.sends(source, self.streams.queue(index))
