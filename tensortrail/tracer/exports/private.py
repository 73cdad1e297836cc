"""Text from a run without what is private in it: home folders, user and machine names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from tensortrail.tracer.reading.timeline import RunTimeline

_LIBRARY = re.compile(r"(?:[A-Za-z]:)?[\\/][^\s'\"`,;:()\[\]]*[\\/](?:site|dist)-packages[\\/]")
_PATH = re.compile(r"(?<![\w.~/\\])(?:[A-Za-z]:)?(?:[\\/][^\s'\"`,;:()\[\]\\/]+){2,}")
_HOME = re.compile(r"^(?:[A-Za-z]:)?[\\/](?:home|Users)[\\/]([^\\/]+)")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
_KEPT = 2
"""The last parts of a path that is nowhere near the program."""
_TOO_COMMON = {"root", "user", "home", "model", "cuda", "main", "test"}


class Private:
    """What must not leave the machine that a run was recorded on."""

    def __init__(self, timeline: RunTimeline) -> None:
        headers = [process.part.header for process in timeline.processes]
        self._here = [str(each["cwd"]).rstrip("/\\") for each in headers if each.get("cwd")]
        names = {str(each.get("host") or "") for each in headers}
        names |= set(_users([*self._here, os.path.expanduser("~")]))
        words = sorted((each for each in names if len(each) > 2 and each not in _TOO_COMMON),
                       key=len, reverse=True)  # fmt: skip
        pattern = "|".join(map(re.escape, words))
        self._names = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)") if words else None

    def without(self, text: str) -> str:
        """Paths below the program's folder are relative, those of libraries begin at the library,
        others keep their end."""
        for here in self._here:
            text = re.sub(rf"{re.escape(here)}[\\/]", "", text)
        text = _LIBRARY.sub("", text)
        text = _PATH.sub(_shortened, text)
        text = _ADDRESS.sub("<address>", text)
        return self._names.sub("<name>", text) if self._names else text


def _users(paths: Iterable[str]) -> Iterable[str]:
    for path in paths:
        if found := _HOME.match(path):
            yield found[1]


def _shortened(found: re.Match[str]) -> str:
    parts = re.split(r"[\\/]", found[0])
    return "/".join(("...", *parts[-_KEPT:]))
