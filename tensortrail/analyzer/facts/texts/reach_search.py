"""One question of what a project comes to: names in its texts are followed to what is run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tensortrail.analyzer.facts.texts.mentions import (
    attributes,
    is_meant,
    is_named,
    may_mean,
    stem_of,
    uses_after_import,
)
from tensortrail.analyzer.facts.texts.project_texts import IMPORTING, ProjectTexts
from tensortrail.analyzer.syntax.text_blocks import Block, blocks_around
from tensortrail.patterns import pattern

_DEEPEST = 4
"""Uses of uses that are followed: what is further off is used."""
_MOST_SEARCHES = 60
"""Names that are looked for in all texts, for one question."""
_MOST_PLACES = 40
"""Of a name in one file."""
_PROSE = (".md", ".rst", ".txt", ".ipynb")
_BASES_THAT_CALL_NOTHING = pattern(
    rb"\s*(?:(?:object|ABC|abc\.ABC|(?:torch\.)?nn\.Module|Module|torch\.nn\.Module)\s*,?\s*)*"
)
_CALLED_BY_A_MODULE = pattern(
    r"__\w+__|forward|reset_parameters|extra_repr|[gs]et_extra_state|_(?:load_from|save_to)_state_dict"
    r"|_apply|_init_weights|_get_name|_named_members"
)


class Answer(NamedTuple):
    holds: bool
    files: frozenset[str]
    """On which it rests: of a yes, one way from what is run; of a no, all that could have been."""
    words: frozenset[str]
    """On whose absence in other files it rests."""


class Search:
    """For one answer: what was met on the way."""

    def __init__(self, texts: ProjectTexts, own: str = "") -> None:
        self._project = texts
        self._own = own
        self._words: set[str] = set()
        self._files: set[str] = set()
        self._way: set[str] = set()
        self._asked: set[tuple[str, str]] = set()
        self._used: dict[str, frozenset[str] | None] = {}

    def answer(self, holds: bool) -> Answer:
        if holds:
            return Answer(True, frozenset(self._way), frozenset())
        return Answer(False, frozenset(self._files), frozenset([*self._words, *IMPORTING]))

    def is_named_outside(self, path: str, name: str, depth: int) -> bool:
        if self._gives_up(name, depth):
            return True
        for other, text in self._project.others_with(name, path):
            if not other.endswith(".py"):
                found = is_named(text, name, False)
            else:
                found = self._is_used_in(other, path, name, depth)
            if found:
                self._way.add(other)
                return True
        return False

    def _is_used_in(self, user: str, path: str, name: str, depth: int) -> bool:
        texts = self._project.texts
        text = texts[user]
        if not is_meant(text, name):
            return False
        self._files.add(user)
        if not may_mean(texts, user, name, path, self._project.names):
            return False
        if not self._is_used_file(user):
            return False
        return self._comes_to(user, list(uses_after_import(text, name)), depth)

    def _comes_to(self, path: str, places: list[int], depth: int) -> bool:
        """Something that is run comes to one of the places; none is an import for others."""
        if not places or len(places) > _MOST_PLACES:
            return True
        text = self._project.texts[path]
        for at in places:
            around = list(blocks_around(text, at))
            if not around or around[-1].decorated or self._is_top_used(path, around[-1], depth):
                return True
        return False

    def _is_top_used(self, path: str, block: Block, depth: int) -> bool:
        if (path, block.name) in self._asked:
            return False
        self._asked.add((path, block.name))
        if self._project.is_handed_out(path, block):
            return True
        inside = [
            at
            for at in uses_after_import(self._project.texts[path], block.name)
            if [each.name for each in blocks_around(self._project.texts[path], at)][-1:]
            != [block.name]
        ]
        if inside and self._comes_to(path, inside, depth + 1):
            return True
        return self.is_named_outside(path, block.name, depth + 1)

    def is_called(self, name: str, depth: int, bare: bool) -> bool:
        """Something that is run reads an attribute of the name; with `bare`, has the name."""
        if self._gives_up(name, depth):
            return True
        for path, text in self._project.others_with(name, ""):
            if not path.endswith(".py"):
                found = _documents(path, text, name)
            else:
                found = self._is_called_in(path, name, depth, bare)
            if found:
                self._way.add(path)
                return True
        return False

    def _is_called_in(self, path: str, name: str, depth: int, bare: bool) -> bool:
        text = self._project.texts[path]
        places = list(attributes(text, name, bare or path == self._own))
        if not places:
            return False
        self._files.add(path)
        if not self._is_used_file(path):
            return False
        return len(places) > _MOST_PLACES or any(
            self._is_called_at(path, text, at, name, depth) for at in places
        )

    def _is_called_at(self, path: str, text: bytes, at: int, name: str, depth: int) -> bool:
        around = list(blocks_around(text, at))
        functions = [each for each in around if not each.is_class]
        if not functions or any(each.decorated for each in functions):
            return True
        outer = functions[-1]
        if outer.name == name or ("", outer.name) in self._asked:
            return False
        classes = around[around.index(outer) + 1 :]
        if not classes and self._project.is_handed_out(path, outer):
            return True
        if classes and self.is_called_from_outside(outer.name, classes[0].name, classes[0].bases):
            return True
        self._asked.add(("", outer.name))
        return self.is_called(outer.name, depth + 1, bare=True)

    def is_called_from_outside(self, method: str, of_class: str, bases: bytes) -> bool:
        """By a library, or by Python."""
        if _CALLED_BY_A_MODULE.fullmatch(method) or not self._is_plain(bases, 0):
            return True
        self._words.add(of_class)
        below = re.compile(rb"^[ \t]*class \w+\(([^()]*\b%s\b[^()]*)\)" % of_class.encode(), re.M)
        for path, text in self._project.others_with(of_class, ""):
            for each in below.finditer(text):
                self._rest_on([path])
                if not self._is_plain(each[1], 0):
                    return True
        return False

    def _is_plain(self, bases: bytes, depth: int) -> bool:
        """No library calls methods of such a class by names of its own."""
        if _BASES_THAT_CALL_NOTHING.fullmatch(bases):
            return True
        if depth > _DEEPEST or b"=" in bases or b"[" in bases:
            return False
        return all(
            _BASES_THAT_CALL_NOTHING.fullmatch(each) or self._is_plain_class(each, depth)
            for each in bases.split(b",")
        )

    def _is_plain_class(self, base: bytes, depth: int) -> bool:
        name = base.strip().rpartition(b".")[2].decode(errors="replace")
        header = re.compile(
            rb"^[ \t]*class %s\b[ \t]*(?:\(([^()]*)\))?" % re.escape(name.encode()), re.M
        )
        found = [
            (path, each[1] or b"")
            for path, text in self._project.others_with(f"class {name}", "")
            for each in header.finditer(text)
        ]
        self._rest_on(path for path, _ in found)
        return bool(found) and all(self._is_plain(each, depth + 1) for _, each in found)

    def _is_used_file(self, path: str) -> bool:
        """It is run, or what is run imports it or speaks of it, be it by way of other files."""
        if path not in self._used:
            self._used[path] = self._comes_from_a_root(path)
        way = self._used[path]
        self._way.update(way or ())
        return way is not None

    def _comes_from_a_root(self, path: str) -> frozenset[str] | None:
        """The files on the way; None if there is no such way."""
        user_of = {path: path}
        near = [path]
        for depth in range(_DEEPEST):
            further: list[str] = []
            for each in near:
                self._files.add(each)
                if (root := self._project.root(each)) is not None:
                    return frozenset(_way(user_of, each)) | {root}
                if self._gives_up(stem_of(each), depth):
                    return frozenset(_way(user_of, each))
                for user in self._project.speaking_of(each):
                    if user not in user_of:
                        user_of[user] = each
                        further.append(user)
            near = further
        return frozenset(_way(user_of, near[0])) if near else None

    def _rest_on(self, paths: Iterable[str]) -> None:
        """Whatever the answer will be."""
        for path in paths:
            self._files.add(path)
            self._way.add(path)

    def _gives_up(self, word: str, depth: int) -> bool:
        self._words.add(word)
        return depth > _DEEPEST or len(self._words) > _MOST_SEARCHES


def _way(user_of: Mapping[str, str], path: str) -> Iterator[str]:
    """From the file back to the one that was asked about."""
    yield path
    while user_of[path] != path:
        path = user_of[path]
        yield path


def _documents(path: str, text: bytes, method: str) -> bool:
    if path.endswith(_PROSE):
        return f".{method}".encode() in text
    return is_named(text, method, False)
