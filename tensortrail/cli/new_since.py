"""`--new-since [BASE]`: a check of the files as they were before a change tells what it brought."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory

from tensortrail.analyzer.choosing.baseline import Baseline
from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.facts.texts.texts_below import LARGEST
from tensortrail.analyzer.facts.uses import ENDS
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.reading.discover import SUFFIXES
from tensortrail.cli.changed import Change
from tensortrail.cli.git import Stored
from tensortrail.config import Config
from tensortrail.files import within, write

_NAMES = (".gitignore", "LICENSE")
"""Files that a check looks for beside those with one of the ends."""


def wanting_all(config: Config) -> Config:
    """All rules and notes, unless others are asked for: who made a change knows what it is for."""
    notes = "all" if config.notes == "short" else config.notes
    return config._replace(select=config.select or ("ALL",), notes=notes)


def with_change(request: CheckRequest, base: str, folder: str) -> CheckRequest:
    """The request for what a change brought: its files, without what was found in them before."""
    change = Change("--new-since", base, folder)
    return request._replace(only=change.files_now(), baseline=_found_before(request, change))


def _found_before(request: CheckRequest, change: Change) -> Baseline:
    top = os.path.realpath(change.repository.top)
    known = Baseline(os.path.join(top, "before"), where=f"in {change.base}")
    asked = [os.path.realpath(each) for each in request.paths]
    names = [each for each in change.names_before() if _concerns(asked, os.path.join(top, each))]
    if not names:
        return known
    with TemporaryDirectory(prefix="tensortrail-") as folder:
        to, root = _moved(top, os.path.realpath(request.root), os.path.realpath(folder))
        _write(change, to)
        paths = tuple(filter(os.path.exists, (os.path.join(to, each) for each in names)))
        before = request._replace(paths=paths, root=root, cache_dir=None, siblings=False)
        there = Baseline(os.path.join(to, "before"))
        entries = there.renewed(check(before).findings, lambda _: True).entries
    return Baseline(known.path, entries, known.where)


def _concerns(asked: Sequence[str], file: str) -> bool:
    """Whether what was found there before may be found now, there or under another name."""
    if not file.endswith(SUFFIXES):
        return False
    return not os.path.exists(file) or any(within(file, each) for each in asked)


def _moved(top: str, root: str, folder: str) -> tuple[str, str]:
    """Where a repository and a root are in the folder: they lie towards each other as before, so
    that patterns still fit."""
    shared = os.path.commonpath((top, root))

    def moved(path: str) -> str:
        return os.path.normpath(os.path.join(folder, "tree", os.path.relpath(path, shared)))

    return moved(top), moved(root)


def _write(change: Change, to: str) -> None:
    os.makedirs(os.path.join(to, ".git"))  # by which the top of a project is known
    for name, data in change.repository.contents(_read_by_a_check(change)):
        path = os.path.normpath(os.path.join(to, name))
        if within(path, to) and ".git" not in name.split("/"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, data)


def _read_by_a_check(change: Change) -> Iterator[Stored]:
    for each in change.repository.files_of(change.commit):
        wanted = each.name.endswith(ENDS) or each.name.rpartition("/")[2] in _NAMES
        if wanted and each.size <= LARGEST:
            yield each
