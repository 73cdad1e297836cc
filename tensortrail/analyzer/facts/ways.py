"""Where dotted names lead: over files, re-exports and `import *`. Each way is gone once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tensortrail.analyzer.facts import questions
from tensortrail.analyzer.facts.answers import Answer, Answers, text_of
from tensortrail.analyzer.facts.contents import Contents, contents
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.rules.unchanging import unchanging

_PLACES = 20
"""How many files are looked into for one name, through `from .x import y` and `import *`."""

FileOf = Callable[[ProjectFile, str], tuple[str, str] | None]
"""The longest part of a dotted name that is a file, and what is left of the name."""
Opened = Callable[[str], ProjectFile | None]
NameOf = Callable[[str], str]
"""The dotted name of a file."""
Noted = Callable[..., None]
"""Told the path of a file, how it answers, the question and the words of it."""


@unchanging(frozen=True, slots=True)
class Way:
    """Where a name is defined, if it is, and the files that were looked into for it."""

    path: str
    name: str
    read: frozenset[str]


class Ways:
    def __init__(
        self, file_of: FileOf, opened: Opened, noted: Noted, answers: Answers, name_of: NameOf
    ) -> None:
        self._file_of, self._opened, self._noted = file_of, opened, noted
        self._kept, self._name_of = answers, name_of
        self._contents: dict[str, Contents | None] = {}
        self._ways: dict[tuple[str | None, str], Way] = {}

    def forget(self, path: str) -> None:
        """The file has changed."""
        self._contents.pop(path, None)
        for name in [key for key, way in self._ways.items() if path in way.read]:
            del self._ways[name]

    def to(self, asking: ProjectFile, dotted: str) -> Way:
        """Where the name is defined; who asks rests on all files that were looked into. Kept for
        others if it does not lead through the file that asks, whose text may be another than the
        disk's."""
        key = asking.root, dotted
        way = self._ways.get(key)
        if way is None or asking.path in way.read:
            way = self._gone(asking, dotted)
            if asking.path not in way.read:
                self._ways[key] = way
        asking.needs |= way.read
        return way

    def _gone(self, asking: ProjectFile, dotted: str) -> Way:
        seen: set[tuple[str, str]] = set()
        todo: list[Iterable[str]] = [[dotted]]
        for name in _all_of(todo):
            found = self._file_of(asking, name)
            if found is None or found in seen:
                continue
            seen.add(found)
            path, rest = found
            contents = self.contents_of(path) if path != asking.path else Contents.of(asking)
            if contents is not None and contents.defines(rest):
                return Way(path, rest, frozenset(path for path, _ in seen))
            if len(seen) >= _PLACES:
                break
            todo += [contents.elsewhere(rest)] if contents is not None else []
        return Way("", "", frozenset(path for path, _ in seen))

    def contents_of(self, path: str) -> Contents | None:
        if path not in self._contents:
            self._contents[path] = self._contents_told(path) or self._contents_read(path)
        return self._contents[path]

    def _contents_told(self, path: str) -> Contents | None:
        told = self._kept.told_before(path, text_of(contents)) if self._kept.wanted else None
        return Contents.told(self._name_of(path), told.found) if told is not None else None

    def _contents_read(self, path: str) -> Contents | None:
        module = self._opened(path)
        found = Contents.of(module) if module is not None else None
        self._noted(
            path,
            lambda: module and questions.outline(module, module.tree.root),
            questions.outline,
            "",
        )
        if found is not None:
            alone = frozenset({path})
            self._kept.keep(path, text_of(contents), Answer(found.data, alone, alone))
        return found


def _all_of(todo: list[Iterable[str]]) -> Iterator[str]:
    """The names of all of them, also of those that are added meanwhile."""
    for names in todo:
        yield from names
