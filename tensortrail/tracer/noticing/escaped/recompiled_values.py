"""Compiled code that may not fall back, and was compiled anew too often: for which value."""

from __future__ import annotations

import re
from typing import Any

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import at, frames_of, told

GAVE_UP = "FailOnRecompileLimitHit"
REASON = "recompile_reason"
"""The variable in which torch keeps the check that failed last."""
_CHECK = re.compile(
    r"^\d{1,9}/\d{1,9}: (?:not )?(?P<value>[\w.\[\]'\"]{1,200})(?: (?:==|!=|is) [^#\n]{1,80}?)?"
    r"\s{1,200}# (?P<code>[^\n]{1,300}?)\s{1,200}# "
    r"(?P<file>[^\s:][^\n:]{0,300}):(?P<line>\d{1,9}) in "
)


def recompiled_value(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if type(error).__name__ != GAVE_UP:
        return None
    reasons = (each.f_locals.get(REASON) for each in reversed(frames_of(error)))
    found = _CHECK.match(next((each for each in reasons if isinstance(each, str)), ""))
    if found is None:
        return None
    return told(
        f"torch compiles anew for each value of `{found['value']}`, read by `{found['code']}`"
        f"{at(found['file'], int(found['line']))}, and gives up after a few",
        "keep the value in a buffer (`register_buffer`), which is read when the code runs, or "
        "compute with it outside of the compiled code",
    )
