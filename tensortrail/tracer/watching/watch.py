"""A watch looks at the operands of a call before it, and at its result afterwards.

Whatever it does, the program gets the result of its call: faults are caught outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensortrail.tracer.events.recorder import Recorder

Args = tuple[Any, ...]
Kwargs = dict[str, Any]


class Watch:
    """Nothing before and nothing after."""

    looks_before = False

    def before(self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs) -> Any:
        return None

    def after(
        self, recorder: Recorder, func: Any, args: Args, kwargs: Kwargs, before: Any, result: Any
    ) -> None: ...
