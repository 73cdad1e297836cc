"""Whether a project comes to a function, class or method: by the names in its texts, from what is
run or handed out. In doubt it does."""

from __future__ import annotations

from collections.abc import Mapping

from tensortrail.analyzer.facts.texts.project_texts import ProjectTexts
from tensortrail.analyzer.facts.texts.reach_search import Answer, Search


class Reach(ProjectTexts):
    """Of the texts of one project; what was looked for is kept."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        super().__init__(texts)
        self._of_names: dict[tuple[str, str], Answer] = {}
        self._of_methods: dict[tuple[str, str, str, bytes], Answer] = {}

    def of_name(self, path: str, name: str) -> Answer:
        """Of a function or class at the top of a file, apart from what this file itself does."""
        key = path, name
        if key not in self._of_names:
            search = Search(self)
            self._of_names[key] = search.answer(search.is_named_outside(path, name, 0))
        return self._of_names[key]

    def of_method(self, path: str, name: str, of_class: str, bases: bytes) -> Answer:
        """Of a method of that name, in that file or elsewhere."""
        key = path, name, of_class, bases
        if key not in self._of_methods:
            search = Search(self, path)
            holds = search.is_called_from_outside(name, of_class, bases)
            self._of_methods[key] = search.answer(holds or search.is_called(name, 0, bare=False))
        return self._of_methods[key]
