"""What the definitions of other files say. Each is asked once, and its answer is kept."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from tensortrail.analyzer.facts import questions
from tensortrail.analyzer.facts.answers import Answer, Answers, text_of
from tensortrail.analyzer.facts.contents import Contents
from tensortrail.analyzer.facts.project_file import Kinds, KnownClass, Place, ProjectFile, Question
from tensortrail.analyzer.facts.ways import FileOf, NameOf, Noted, Opened, Way, Ways

A = TypeVar("A")
_MOST_CLASSES = 1000
"""Classes whose facts are kept: those asked about last. The names of a model's methods and
attributes take some ten kilobytes."""
_MOST_ANSWERS = 20_000
"""Of questions about definitions; they are names and kinds."""
_DEEPEST = 20
"""Definitions that are asked about because others of other files rest on them."""


class Definitions:
    """What files of a project define, for the other files. What is found outlives the trees of
    the files, which are let go of."""

    def __init__(
        self, file_of: FileOf, opened: Opened, noted: Noted, answers: Answers, name_of: NameOf
    ) -> None:
        self._opened, self._noted, self._kept = opened, noted, answers
        self._ways = Ways(file_of, opened, noted, answers, name_of)
        self._classes: OrderedDict[tuple[str, str], KnownClass] = OrderedDict()
        self._answers: dict[tuple[Any, ...], Answer] = {}
        """By the question and what it is about."""
        self._half_known = 0
        """Answers that rest on what was being run, and are not kept."""
        self._sets: dict[frozenset[str], frozenset[str]] = {}
        self._asked: set[tuple[Question[Any], str, str]] = set()

    def forget(self, path: str) -> None:
        """The file has changed."""
        self._ways.forget(path)
        for place in [key for key, known in self._classes.items() if path in known.read]:
            del self._classes[place]
        for key in [key for key, answer in self._answers.items() if path in answer.rests_on]:
            del self._answers[key]

    def of(self, asking: ProjectFile, dotted: str) -> tuple[ProjectFile, ast.AST] | None:
        """The file and the class or function the name stands for."""
        way = self._ways.to(asking, dotted)
        module = asking if way.path == asking.path else self._opened(way.path) if way.path else None
        node = module.definition_named(way.name) if module is not None else None
        return (module, node) if module is not None and node is not None else None

    def about(self, asking: ProjectFile, dotted: str, question: Question[A]) -> A | None:
        """The answer to the question about the class or function the name stands for; None if it
        stands for neither, or asks about itself."""
        way = self._ways.to(asking, dotted)
        key = question, way.path, way.name
        known = self._known(key, way.path, question, way.name)
        if known is None or asking.path in known.read:
            known = self._asked_now(asking, dotted, question, way)
            if known is None:
                return None
            if asking.path not in known.read:
                self._keep_answer(key, known)
                self._kept.keep(way.path, text_of(question, way.name), known)
        _rest(asking, known.rests_on)
        found: A = known.found
        return found

    def defined(self, asking: ProjectFile, dotted: str, kinds: Kinds) -> Place | None:
        """Where the class or function is that the name stands for."""
        way = self._ways.to(asking, dotted)
        return self.named_in(asking, way.path, way.name, kinds) if way.path else None

    def named_in(self, asking: ProjectFile, path: str, dotted: str, kinds: Kinds) -> Place | None:
        """What the file of that path calls by a name, if it is of this kind."""
        contents = Contents.of(asking) if path == asking.path else self._ways.contents_of(path)
        name = contents.named(dotted, kinds) if contents is not None else ""
        asking.needs.add(path)
        return Place(path, name) if name else None

    def at(
        self, asking: ProjectFile, place: Place, question: Callable[..., A], *words: str
    ) -> A | None:
        """What the definition at that place says, or all of the file where the place has no name;
        the file is not read again for it."""
        key = question, place, words
        answer = self._known(key, place.path, question, place.name, *words)
        if answer is None or asking.path in answer.read:
            file = self._opened(place.path)
            node = _node_at(file, place.name) if file is not None else None
            if file is None or node is None:
                return None
            half_known, before = self._half_known_of(file), frozenset(file.needs)
            with asking.project.asked_anew():
                found = question(file, node, *words)
            self._noted(place.path, lambda: found, question, place.name, *words)
            read = frozenset({place.path, *(file.needs - before)})
            answer = Answer(found, read, self._shared(frozenset({place.path, *file.needs})))
            if not file.running and half_known == self._half_known_of(file):
                if asking.path not in read:
                    self._keep_answer(key, answer)
                    self._kept.keep(place.path, text_of(question, place.name, *words), answer)
            else:
                self._half_known += 1
        _rest(asking, answer.rests_on)
        told: A = answer.found
        return told

    def _half_known_of(self, file: ProjectFile) -> tuple[int, int]:
        """Goes up when an answer does not say all: something was asked while it was being run."""
        return file.asked_early, self._half_known

    def _known(
        self, key: tuple[Any, ...], path: str, question: Question[Any], *words: str
    ) -> Answer | None:
        """An answer of this check, or of an earlier one."""
        answer = self._answers.get(key)
        if answer is None and self._kept.wanted:
            answer = self._kept.told_before(path, text_of(question, *words))
            if answer is not None:
                self._keep_answer(key, answer)
        return answer

    def _keep_answer(self, key: tuple[Any, ...], answer: Answer) -> None:
        if len(self._answers) >= _MOST_ANSWERS:
            self._answers.clear()
        self._answers[key] = answer

    def _asked_now(
        self, asking: ProjectFile, dotted: str, question: Question[Any], way: Way
    ) -> Answer | None:
        key = question, way.path, way.name
        if key in self._asked or len(self._asked) >= _DEEPEST:
            return None
        defined = self.of(asking, dotted)
        if defined is None:
            return None
        before = frozenset(defined[0].needs)
        self._asked.add(key)
        try:
            with asking.project.asked_anew():
                found = question(*defined)
        finally:
            self._asked.remove(key)
        self._noted(way.path, lambda: found, question, way.name)
        needs = defined[0].needs
        return Answer(found, way.read | (needs - before), self._shared(way.read | needs))

    def of_class(self, asking: ProjectFile, dotted: str) -> KnownClass | None:
        """What is known of the class the name stands for; None if it stands for no class."""
        way = self._ways.to(asking, dotted)
        key = way.path, way.name
        known = self._class_known(key)
        if known is not None and asking.path not in known.read:
            self._classes.move_to_end(key)
            _rest(asking, known.read)
            return known
        found = self.of(asking, dotted)
        if found is None or not isinstance(found[1], ast.ClassDef):
            return None
        module = found[0]
        with asking.project.asked_anew():
            facts = module.class_facts(found[1])
        self._noted(way.path, lambda: facts, questions.class_facts, way.name)
        known = KnownClass(facts, self._shared(way.read | module.needs | {module.path}))
        _rest(asking, known.read)
        if asking.path not in known.read:
            self._keep(key, known)
            answer = Answer(facts, known.read, known.read)
            self._kept.keep(way.path, text_of(questions.class_facts, way.name), answer)
        return known

    def _class_known(self, key: tuple[str, str]) -> KnownClass | None:
        """The same of a class."""
        path, name = key
        if key not in self._classes and self._kept.wanted:
            told = self._kept.told_before(path, text_of(questions.class_facts, name))
            if told is not None:
                self._keep(key, KnownClass(told.found, self._shared(told.read)))
        return self._classes.get(key)

    def _shared(self, paths: frozenset[str]) -> frozenset[str]:
        """The same object for the same files: most of what a file defines rests on the same."""
        if len(self._sets) > _MOST_CLASSES:
            self._sets.clear()
        return self._sets.setdefault(paths, paths)

    def _keep(self, key: tuple[str, str], known: KnownClass) -> None:
        self._classes[key] = known
        if len(self._classes) > _MOST_CLASSES:
            self._classes.popitem(last=False)


def _node_at(file: ProjectFile, name: str) -> ast.AST | None:
    return file.definition_named(name) if name else file.tree.root


def _rest(asking: ProjectFile, read: frozenset[str]) -> None:
    if read not in asking.rested_on:
        asking.rested_on.add(read)
        asking.needs |= read
