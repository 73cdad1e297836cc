"""A tensor whose memory is shared by a process that had ended before it was taken out."""

from __future__ import annotations

from typing import Any

from torch.multiprocessing import reductions

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import frames_of, told

REFUSED = (ConnectionError, FileNotFoundError, EOFError)
CAUSE = (
    "the process that sent this tensor had ended: what is sent through a queue or pipe is only a "
    "handle, and the memory comes from the process that made the tensor"
)
CHANGE = (
    "take all tensors out before the process ends, as with `queue.get()` before `process.join()`, "
    "and let it wait until they are; or send copies, `tensor.numpy()`"
)


def ended_sender(error: BaseException, _: Storages) -> dict[str, Any] | None:
    rebuilt = any(each.f_code.co_filename == reductions.__file__ for each in frames_of(error))
    return told(CAUSE, CHANGE) if isinstance(error, REFUSED) and rebuilt else None
