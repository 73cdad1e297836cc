"""Warnings name the line that they name without a recording.

A filter knows a warning by its module, its line and the registry of its module. Torch's C++ and
`stacklevel` count frames for that, and frames of ours are among them."""

from __future__ import annotations

import importlib
import sys
import warnings
from types import FrameType, ModuleType
from typing import Any

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.unrecorded_frames import frames_without_us, is_ours
from tensortrail.tracer.patching.patches import Patches

LIBRARY = "warnings"
BEYOND = 1 << 30
"""A level above all frames. Python calls that place `sys`, line 1."""


def install(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(warnings, "warn", _warn, everywhere=True, at_any_time=True)
    if type(warnings) is ModuleType:
        warnings.__class__ = Warnings
        recorder.at_close.append(_restore)


def _restore() -> None:
    if type(warnings) is Warnings:
        warnings.__class__ = ModuleType  # type: ignore[assignment]


# --- warnings of Python, with a level ------------------------------------------------------
def _warn(original: Any, *args: Any, **kwargs: Any) -> Any:
    """`warnings.warn(message, category, stacklevel, source)`"""
    level = args[2] if len(args) > 2 else kwargs.get("stacklevel", 1)
    if type(level) is not int:
        return original(*args, **kwargs)
    counted = _counted(level, kwargs.pop("skip_file_prefixes", ()))
    if len(args) > 2:
        return original(*args[:2], counted, *args[3:], **kwargs)
    return original(*args, **{**kwargs, "stacklevel": counted})


def _counted(level: int, passed_over: tuple[str, ...]) -> int:
    """The level, counted from the frame of `_warn`, of the frame that is meant."""
    meant = _meant(level, passed_over)
    frame: FrameType | None = sys._getframe(1)
    count = 0
    while frame is not None:
        count += not _imports(frame)
        if frame is meant:
            return count
        frame = frame.f_back
    return BEYOND


def _meant(level: int, passed_over: tuple[str, ...]) -> FrameType | None:
    found = frames_without_us(sys._getframe(3))
    here = next(found, None)
    for _ in range(max(level, 2 if passed_over else 1) - 1):
        here = next((each for each in found if not _skipped(each, passed_over)), None)
    return here


def _skipped(frame: FrameType, passed_over: tuple[str, ...]) -> bool:
    return _imports(frame) or frame.f_code.co_filename.startswith(passed_over)


def _imports(frame: FrameType) -> bool:
    """Frames of the import system are not counted by Python."""
    file = frame.f_code.co_filename
    return "importlib" in file and "_bootstrap" in file


# --- warnings of C++, at the frame that called it -------------------------------------------
class Warnings(ModuleType):
    """The module while a recording is on: its C code asks it for the filters of each warning."""

    @property
    def filters(self) -> Any:
        found = vars(self)["filters"]
        frame = sys._getframe(1)
        if is_ours(frame) and frame.f_code not in PLACED:
            asked = Elsewhere(frame)
            return [("ignore", asked, asked, asked, 0), *found]
        return found

    @filters.setter
    def filters(self, value: Any) -> None:
        vars(self)["filters"] = value

    def __reduce__(self) -> Any:
        return importlib.import_module, ("warnings",)


class Elsewhere:
    """A filter for one warning that is about to be placed at a frame of ours: it ignores that, and
    places the warning where it belongs."""

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame
        self._heard: list[str] = []

    def match(self, text: str) -> bool:
        self._heard.append(text)  # the message, then the module
        return True

    def __subclasscheck__(self, category: type[Warning]) -> bool:
        message, module = self._heard
        if module != self._frame.f_globals["__name__"]:
            return False  # placed by name: the frame is not what counts
        frame = next(frames_without_us(self._frame), None)
        place = frame.f_globals if frame is not None else vars(sys)
        warnings.warn_explicit(
            message,
            category,
            filename=frame.f_code.co_filename if frame is not None else "sys",
            lineno=frame.f_lineno if frame is not None else 1,
            module=place.get("__name__", "<string>"),
            registry=place.setdefault("__warningregistry__", {}),
        )
        return True


ASKED = (vars(Warnings)["filters"].fget, Elsewhere.match, Elsewhere.__subclasscheck__)
"""What C code calls, wherever a warning is raised."""
PLACED = {_warn.__code__, Elsewhere.__subclasscheck__.__code__}
"""Code of ours that has said where a warning belongs."""
