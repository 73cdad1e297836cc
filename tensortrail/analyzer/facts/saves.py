"""Which files of a project write files with `torch.save`: read from their texts, when asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import top_of_project
from tensortrail.analyzer.facts.texts.texts_below import APART, LARGEST, text_of, texts_below
from tensortrail.files import within
from tensortrail.rules.project_facts import SavedFile

_MOST_FILES = 60
"""That write files: of more nothing is said."""

Question = Callable[[ProjectFile], list[SavedFile]]


class Saves:
    """What the files of projects write."""

    def __init__(self) -> None:
        self._tops: dict[str, str] = {}
        self._writing: dict[str, list[str]] = {}
        self._saves: dict[str, list[SavedFile]] = {}

    def forget(self, path: str) -> None:
        """The file may have changed."""
        self._saves.pop(path, None)
        for folder, paths in self._writing.items():
            if path in paths or _lies_in(path, folder):
                kept = [each for each in paths if each != path]
                writes = _writes(text_of(path, LARGEST))
                self._writing[folder] = [*kept, path] if writes else kept

    def around(self, file: ProjectFile, question: Question) -> Sequence[SavedFile]:
        """Those that other files of the same project write."""
        paths = [each for each in self._paths(file.path) if each != file.path]
        if len(paths) > _MOST_FILES:
            return ()
        return [each for path in paths for each in self._of(file, path, question)]

    def _of(self, asking: ProjectFile, path: str, question: Question) -> list[SavedFile]:
        if path not in self._saves:
            other = asking.project.module_at(path)
            self._saves[path] = question(other) if other is not None else []
        return self._saves[path]

    def _paths(self, path: str) -> list[str]:
        folder = os.path.dirname(path)
        if folder not in self._tops:
            self._tops[folder] = top_of_project(folder or os.curdir)
        top = self._tops[folder]
        if top not in self._writing:
            self._writing[top] = list(_writing_below(top))
        return self._writing[top]


def _writing_below(top: str) -> Iterator[str]:
    for path, text in texts_below(top, APART, text_of):
        if len(text) <= LARGEST and _writes(text):
            yield path


def _lies_in(path: str, folder: str) -> bool:
    return not os.path.isabs(path) if folder == os.curdir else within(path, folder)


def _writes(text: bytes) -> bool:
    return b"save(" in text and b"torch" in text
