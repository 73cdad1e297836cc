"""The configuration that holds for a file, and the checker that knows its project."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import Checker, ignored
from tensortrail.analyzer.reading.discover import matches
from tensortrail.config import ConfigError
from tensortrail.findings import Finding

Requested = Callable[[str, Mapping[str, Any]], CheckRequest]
"""Takes a folder and the client's settings; raises ConfigError."""
Stamps = tuple[tuple[int, int], ...]


@dataclass
class _Known:
    """What is known under these settings. New settings begin a new one: a check that still runs in
    its thread cannot keep there what the old settings said."""

    settings: Mapping[str, Any]
    requests: dict[str, CheckRequest | None] = field(default_factory=dict)
    """By folder; None where the configuration cannot be used, which was said."""
    checkers: dict[str, Checker] = field(default_factory=dict)
    """By the root of the configuration."""
    stamps: Stamps = ()


class Projects:
    """One for each configuration: folders of a workspace may have several."""

    def __init__(self, requested: Requested, complain: Callable[[str], None]) -> None:
        self._requested = requested
        self._complain = complain
        self._known = _Known({})
        self._changing = threading.Lock()

    def configure(self, settings: Mapping[str, Any]) -> None:
        with self._changing:
            self._known = _Known(settings)

    def reload(self) -> None:
        with self._changing:
            self._known = _Known(self._known.settings)

    def forget(self, path: str) -> None:
        for each in list(self._known.checkers.values()):
            each.forget(path)

    def check(self, name: str, program: bytes) -> Sequence[Finding]:
        _stand_somewhere()
        known = self._up_to_date()
        request = self._request(known, os.path.dirname(name))
        if request is None or _excluded(request, name):
            return ()
        if request.root not in known.checkers:
            known.checkers[request.root] = Checker(request)
        return known.checkers[request.root](name, program)

    def wants(self, finding: Finding) -> bool:
        """Whether the configuration lets the finding of a run in this file be reported."""
        request = self._request(self._up_to_date(), os.path.dirname(finding.site.file))
        if request is None or _excluded(request, finding.site.file):
            return False
        chosen = request.codes is None or finding.code in request.codes
        return chosen and not ignored(request, finding)

    def _up_to_date(self) -> _Known:
        known = self._known
        if _stamps(known) == known.stamps:
            return known
        with self._changing:  # a configuration or a baseline was written meanwhile
            if self._known is known:
                self._known = _Known(known.settings)
            return self._known

    def _request(self, known: _Known, folder: str) -> CheckRequest | None:
        if folder not in known.requests:
            try:
                known.requests[folder] = self._requested(folder or ".", known.settings)
            except ConfigError as error:
                known.requests[folder] = None
                self._complain(str(error))
            known.stamps = _stamps(known)
        return known.requests[folder]


def _stamps(known: _Known) -> Stamps:
    files = set()
    for folder, request in known.requests.items():
        files.add(os.path.join(request.root if request else folder, "pyproject.toml"))
        if request is not None and request.baseline is not None:
            files.add(request.baseline.path)
    return tuple(map(_stamp, sorted(files)))


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
