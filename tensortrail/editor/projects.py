"""The configuration that holds for a file, and the checker that knows its project."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import Checker, ignored
from tensortrail.analyzer.reading.discover import matches
from tensortrail.config import ConfigError
from tensortrail.findings import Finding

Requested = Callable[[str, Mapping[str, Any]], CheckRequest]
"""Takes a folder and the client's settings; raises ConfigError."""
Stamps = tuple[tuple[int, int], ...]


class Projects:
    """One for each configuration: folders of a workspace may have several."""

    def __init__(self, requested: Requested, complain: Callable[[str], None]) -> None:
        self._requested = requested
        self._complain = complain
        self._settings: Mapping[str, Any] = {}
        self._requests: dict[str, CheckRequest | None] = {}
        """By folder; None where the configuration cannot be used, which was said."""
        self._checkers: dict[str, Checker] = {}
        """By the root of the configuration."""
        self._stamps: Stamps = ()

    def configure(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self.reload()

    def reload(self) -> None:
        self._requests.clear()
        self._checkers.clear()

    def forget(self, path: str) -> None:
        for each in list(self._checkers.values()):
            each.forget(path)

    def check(self, name: str, program: bytes) -> Sequence[Finding]:
        _stand_somewhere()
        request = self._request(os.path.dirname(name))
        if request is None or _excluded(request, name):
            return ()
        if request.root not in self._checkers:
            self._checkers[request.root] = Checker(request)
        return self._checkers[request.root](name, program)

    def wants(self, finding: Finding) -> bool:
        """Whether the configuration lets the finding of a run in this file be reported."""
        request = self._request(os.path.dirname(finding.site.file))
        if request is None or _excluded(request, finding.site.file):
            return False
        chosen = request.codes is None or finding.code in request.codes
        return chosen and not ignored(request, finding)

    def _request(self, folder: str) -> CheckRequest | None:
        stamps = tuple(map(_stamp, self._watched()))
        if stamps != self._stamps:  # a configuration or a baseline was written meanwhile
            self.reload()
        if folder not in self._requests:
            try:
                self._requests[folder] = self._requested(folder or ".", self._settings)
            except ConfigError as error:
                self._requests[folder] = None
                self._complain(str(error))
            self._stamps = tuple(map(_stamp, self._watched()))
        return self._requests[folder]

    def _watched(self) -> list[str]:
        files = set()
        for folder, request in self._requests.items():
            files.add(os.path.join(request.root if request else folder, "pyproject.toml"))
            if request is not None and request.baseline is not None:
                files.add(request.baseline.path)
        return sorted(files)


def _stand_somewhere() -> None:
    """The folder that the editor started the server in may be gone: no path could be made whole."""
    try:
        os.getcwd()
    except OSError:
        os.chdir(os.sep)


def _excluded(request: CheckRequest, name: str) -> bool:
    relative = os.path.relpath(name, request.root).replace(os.sep, "/")
    return any(matches(relative, each) for each in request.exclude)


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)
