"""Traced code makes a tensor on the device on which it was traced."""

from __future__ import annotations

import re
from typing import Any

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import told

_SERIALIZED = re.compile(r"Traceback of TorchScript, serialized code[\s\S]{1,20000}?\n\n")
_MADE = re.compile(
    r"(?P<op>torch\.\w{1,60})\([^\n]{0,500}?device=torch\.device\(\"(?P<device>[\w:]{1,20})\"\)"
)


def traced_device(error: BaseException, _: Storages) -> dict[str, Any] | None:
    said = str(error)
    code = _SERIALIZED.search(said) if "on the same device" in said else None
    made = _MADE.search(code[0]) if code else None
    if made is None:
        return None
    device = made["device"]
    return told(
        f'the traced code makes a tensor with `{made["op"]}(..., device="{device}")`: '
        "`torch.jit.trace` keeps each device as it was when it was traced, and moving the traced "
        "module moves only its weights and buffers",
        "trace it anew with the model and its inputs on the device where it is to run; or make "
        "that tensor a buffer, or use `torch.jit.script`, which asks for the device as it runs",
    )
