"""A backward pass failed after an autograd function of the program gave a gradient on another
device than the one that it was given."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from tensortrail.tracer.identity.sites import OURS, OWNERS
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.hooked_activations import BACKWARD
from tensortrail.tracer.noticing.escaped.told import at, frames_of, told

_REFUSED = re.compile(
    r"on the same device|returned an invalid gradient at index \d+ - expected dev"
)


class Returned(NamedTuple):
    function: str
    file: str
    line: int
    """Of its `backward`."""
    given: str
    gave: str


RETURNED: list[Returned] = []


def foreign_gradient(error: BaseException, _: Storages) -> dict[str, Any] | None:
    """The engine itself raised: no function of the program ran in the backward pass."""
    if not RETURNED or not isinstance(error, RuntimeError) or not _REFUSED.search(str(error)):
        return None
    files = [frame.f_code.co_filename for frame in frames_of(error)]
    theirs = [file for file in files if OWNERS[file] != OURS]
    if not theirs or not theirs[-1].endswith(BACKWARD):
        return None
    found = RETURNED[-1]
    return told(
        f"the backward pass was given tensors of two devices: `{found.function}.backward`"
        f"{at(found.file, found.line)} gets a gradient on {found.given} and returns one on "
        f"{found.gave}",
        f"return it where its input was: make it with `device=grad.device`, or return "
        f"`result.to(grad.device)`, in `{found.function}.backward`",
    )
