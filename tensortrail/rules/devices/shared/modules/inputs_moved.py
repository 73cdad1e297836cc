"""Modules of which hooks move what they are called with."""

from __future__ import annotations

from tensortrail.rules.places import MODEL, Meeting
from tensortrail.rules.view import Module

_CALLED = "module"
"""The operation of a meeting of a module with what it is called with."""
_MOVING = (
    "register_forward_pre_hook", "add_hook_to_module", "attach_align_device_hook", "dispatch_model",
    "cpu_offload", "cpu_offload_with_hook", "disk_offload", "load_checkpoint_and_dispatch",
)  # fmt: skip


def may_have_moved(module: Module, meeting: Meeting) -> bool:
    """A module is called, in a file that puts such hooks on modules."""
    return meeting.operation in (_CALLED, MODEL) and module.once(_puts_hooks, module.top)


def _puts_hooks(module: Module, file: object) -> bool:
    return any(True for _ in module.calls(*_MOVING))
