"""Torch remembers compiled code; what it learned in a rehearsal goes with the rehearsal."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import Any

from torch._dynamo import device_interface, pgo, trace_rules
from torch._dynamo.convert_frame import input_codes
from torch._dynamo.eval_frame import _debug_get_cache_entry_list, reset_code
from torch._dynamo.guards import DeletedGuardManagerWrapper
from torch._subclasses.fake_tensor import FakeTensorMode

from tensortrail.tracer.rehearsal.replacements import Replacements

OVER = "the rehearsal it was compiled in is over"


class Caches:
    def __init__(self, replaced: Replacements) -> None:
        replaced.put(device_interface, "device_interfaces", {})
        replaced.put(device_interface, "_device_initialized", False)
        if pgo._CODE_STATE is not None:
            replaced.put(pgo, "_CODE_STATE", pgo._CODE_STATE.copy())
        self._rules = trace_rules.get_torch_obj_rule_map()
        self._before = {code: [entry.guard_manager for entry in entries(code)] for code in seen()}
        FakeTensorMode.cache_clear()

    def forget(self) -> None:
        FakeTensorMode.cache_clear()
        if trace_rules.get_torch_obj_rule_map() is not self._rules:
            trace_rules.clear_lru_cache()
        for code in list(seen()):
            if code not in self._before:
                reset_code(code)
                continue
            for entry in entries(code):
                if not any(entry.guard_manager is known for known in self._before[code]):
                    _invalidate(entry)


def seen() -> Iterator[CodeType]:
    for reference in input_codes.seen:
        if (code := reference()) is not None:
            yield code


def entries(code: CodeType) -> list[Any]:
    return list(_debug_get_cache_entry_list(code))


def _invalidate(entry: Any) -> None:
    guards = entry.guard_manager
    if guards.cache_entry is not None and guards.extra_state is not None:
        guards.extra_state.invalidate(guards.cache_entry, DeletedGuardManagerWrapper(OVER))
