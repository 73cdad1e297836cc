"""Torch's C++ starts a kind of device once, and remembers that it did."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

import torch

LIBRARY = os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_python.so")
SET_REQUIRES_DEVICE_INIT = "_ZN5torch5utils24set_requires_device_initEN3c1010DeviceTypeEb"
CUDA = 1
"""`c10::DeviceType::CUDA`"""


def forget_start() -> None:
    """The next use of CUDA starts it, or raises what torch raises where there is none."""
    with suppress(OSError, AttributeError):  # another system's library: it goes on without
        getattr(ctypes.PyDLL(LIBRARY), SET_REQUIRES_DEVICE_INIT)(CUDA, True)
