"""What is customary in a project: how a function is called, what is passed, where devices are
chosen. Read from the text of its files, when asked."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tensortrail.analyzer.facts.texts.chosen_gpus import numbered_gpu
from tensortrail.analyzer.facts.texts.namesakes import namesakes_in
from tensortrail.analyzer.facts.texts.passed_on import passed_in, words_in
from tensortrail.analyzer.facts.texts.programs import Importers, imported, of_one_program
from tensortrail.analyzer.facts.texts.texts_below import TextsOnce, texts_below
from tensortrail.analyzer.facts.texts.written_calls import calls_in, defined_in
from tensortrail.analyzer.syntax.guarded_statements import moves_in
from tensortrail.patterns import pattern
from tensortrail.rules.project_facts import GuardedStatement, Namesake, ProjectCall

_MAKES_GPU_DEFAULT = pattern(
    rb"^[ \t]*[\w.]*\bset_default_(?:"
    rb"(?:device|tensor_type)\([^)\n]*(?:cuda|xpu|npu)"
    rb"|device\([ \t]*(?!None\b)[A-Za-z_][\w.]*[ \t]*\))",
    re.MULTILINE,
)
MAKE_DEFAULT = ("set_default_device", "set_default_tensor_type")
"""Words of whoever makes a GPU, or a device that is chosen, the default one."""
GPU = "cuda"
"""The word of whoever names a GPU by its number."""
_ON_CURRENT_GPU = pattern(rb"\.cuda\(\s*(?:non_blocking\s*=\s*\w+\s*)?\)")
_ON_A_DEVICE = pattern(rb"\bdevice\s*=(?!=)(?!\s*['\"]cuda['\"])|\.to\([^)\n]*\bdevice\b")
_BUILDS_ON_DEVICE = pattern(
    rb"with (?:[^\n#]*, *)?(?:torch\.device\((?!['\"](?:meta|cpu))[^\n]*"
    rb"|(?:\w+\.)*\w*device\b *(?:,[^\n]*)?):"
)
"""Behind what indents a line. A pattern that begins with a word is found four times as fast."""
_OFTEN = 3
"""A package is for the current GPU if a device is named at most so many times as often."""
_TESTS = frozenset({"test", "tests", "testing", "unittest", "test_utils"})


class Customs:
    """The texts of projects, and the calls that were found in them."""

    def __init__(self, texts: TextsOnce | None = None) -> None:
        self._text_of = (texts or TextsOnce()).of
        self._texts: dict[str, dict[str, bytes]] = {}
        self._calls: dict[tuple[str, str, bool], Sequence[ProjectCall]] = {}
        self._passed: dict[tuple[str, bytes], Counter[tuple[bytes, bytes]]] = {}
        self._passed_in: dict[tuple[str, str], Counter[tuple[bytes, bytes]]] = {}
        self._moves: dict[str, dict[str, list[GuardedStatement]]] = {}
        self._defaults: dict[str, dict[str, int]] = {}
        self._on_current_gpu: dict[str, Sequence[str]] = {}
        self._builds_on_device: dict[str, str | None] = {}
        self._numbered_gpus: dict[str, dict[str, int]] = {}
        self._written: dict[tuple[str, re.Pattern[bytes]], str | None] = {}
        self._namesakes: dict[tuple[str, str], Sequence[Namesake]] = {}
        self._times_called: dict[tuple[str, str], int] = {}
        self._importers: dict[str, Importers] = {}
        self._callers: dict[tuple[str, str], Sequence[str]] = {}

    def forget(self, path: str) -> None:
        """The file may have changed."""
        for folder, texts in self._texts.items():
            if path not in texts or (now := self._text_of(path)) == texts[path]:
                continue
            before, texts[path] = texts[path], now
            self._passed_in.pop((folder, path), None)
            self._calls.clear()
            self._defaults.clear()
            self._on_current_gpu.clear()
            self._builds_on_device.clear()
            self._numbered_gpus.clear()
            self._written.clear()
            self._namesakes.clear()
            self._callers.clear()
            self._importers.clear()
            self._times_called.clear()
            for (counted, word), passed in self._passed.items():
                if counted == folder:
                    passed.subtract(Counter(passed_in(before, word)))
                    passed.update(Counter(passed_in(now, word)))
            if folder in self._moves:
                for key, each in moves_in(path, before):
                    self._moves[folder][key].remove(each)
                _add(self._moves[folder], moves_in(path, now))

    def passed(self, folder: str, name: str, keyword: str) -> int:
        """How often a call of anything by that name passes the keyword, at least about."""
        pair = name.encode(), keyword.encode()
        return sum(self._passed_for(folder, word).get(pair, 0) for word in words_in(keyword))

    def _passed_for(self, folder: str, word: bytes) -> Counter[tuple[bytes, bytes]]:
        key = folder, word
        if key not in self._passed:
            texts = self._texts_of(folder).values()
            self._passed[key] = Counter(each for text in texts for each in passed_in(text, word))
        return self._passed[key]

    def calls(self, folder: str, dotted: str, namesakes: bool = False) -> Sequence[ProjectCall]:
        """Calls of a function in the files below the folder, by its dotted name. None are given
        of a name that is called too often, or stands for several functions, if these are not to
        be among them."""
        key = (folder, dotted, namesakes)
        if key not in self._calls:
            self._calls[key] = calls_in(self._texts_of(folder), dotted, namesakes)
        return self._calls[key]

    def moves(self, folder: str, statement: str) -> Sequence[GuardedStatement]:
        """Statements of the files below the folder that read like this one."""
        if folder not in self._moves:
            found = self._moves[folder] = {}
            for path, text in self._texts_of(folder).items():
                _add(found, moves_in(path, text))
        return self._moves[folder].get(statement, ())

    def gpu_made_default(self, folder: str) -> dict[str, int]:
        """The files below the folder that make a GPU the default device, and the lines."""
        if folder not in self._defaults:
            found = self._defaults[folder] = {}
            for path, text in self._texts_of(folder).items():
                made = b"set_default_" in text and _MAKES_GPU_DEFAULT.search(text)
                if made:
                    found[path] = text.count(b"\n", 0, made.start()) + 1
        return self._defaults[folder]

    def for_current_gpu(self, folder: str) -> Sequence[str]:
        """Files below the folder that write `.cuda()`, if they are several, and it is written
        nearly as often as a device; else none."""
        if folder not in self._on_current_gpu:
            texts = self._texts_of(folder)
            bare = {path: found for path, text in texts.items() if (found := on_current_gpu(text))}
            devices = map(_ON_A_DEVICE.findall, texts.values()) if len(bare) > 1 else ()
            named = sum(map(len, devices))
            is_usual = len(bare) > 1 and named <= _OFTEN * sum(bare.values())
            self._on_current_gpu[folder] = [*bare] if is_usual else []
        return self._on_current_gpu[folder]

    def builds_on_device(self, folder: str) -> str | None:
        """A file below the folder that has a `with torch.device(device):`."""
        if folder not in self._builds_on_device:
            texts = self._texts_of(folder).items()
            found = (path for path, text in texts if builds_on_device(text))
            self._builds_on_device[folder] = next(found, None)
        return self._builds_on_device[folder]

    def numbered_gpus(self, folder: str) -> dict[str, int]:
        """The files below the folder that name another GPU than the first, and the lines."""
        if folder not in self._numbered_gpus:
            texts = self._texts_of(folder).items()
            self._numbered_gpus[folder] = {p: n for p, text in texts if (n := numbered_gpu(text))}
        return self._numbered_gpus[folder]

    def of_one_program(self, folder: str, path: str) -> Iterator[str]:
        """The file and those below the folder that come to import it."""
        if folder not in self._importers:
            self._importers[folder] = Importers(self._texts_of(folder))
        return of_one_program(path, self._importers[folder].of)

    def importing_beside(self, folder: str, package: str) -> Sequence[str]:
        """The files in the folder itself that import the package, and torch."""
        beside = (p for p in self._texts_of(folder) if (os.path.dirname(p) or os.curdir) == folder)
        both = {package.encode(), b"torch"}
        return [path for path in beside if both <= imported(self.text_in(folder, path))]

    def text_in(self, folder: str, path: str) -> bytes:
        """The text of the file below the folder; nothing if it is not there."""
        return self._texts_of(folder).get(path, b"")

    def is_written(self, folder: str, word: str, how: re.Pattern[bytes]) -> str | None:
        """A file below the folder that has the word in a place that the pattern tells."""
        key = folder, how
        if key not in self._written:
            raw, texts = word.encode(), self._texts_of(folder).items()
            found = (path for path, text in texts if raw in text and how.search(text))
            self._written[key] = next(found, None)
        return self._written[key]

    def namesakes(self, folder: str, name: str) -> Sequence[Namesake]:
        """Functions and methods of that name in the files below the folder."""
        key = folder, name
        if key not in self._namesakes:
            texts = self._texts_of(folder).items()
            self._namesakes[key] = [
                each for path, text in texts for each in namesakes_in(path, text, name)
            ]
        return self._namesakes[key]

    def files_calling(self, folder: str, name: str, owner: str, of_class: bool) -> Sequence[str]:
        """Files below the folder that may call a method of the class, which they name, or a
        function by its name alone or by that of its module."""
        key = folder, f"{owner}.{name}"
        if key not in self._callers:
            word, beside = name.encode() + b"(", owner.encode()
            before = rb"\." if of_class else rb"(?:(?<![\w.])(?<!def )|\b%s\.)" % re.escape(beside)
            called = re.compile(before + re.escape(word))
            texts = self._texts_of(folder).items()
            having = ((path, text) for path, text in texts if word in text)
            self._callers[key] = [
                path
                for path, text in having
                if called.search(text) and (not of_class or beside in text)
            ]
        return self._callers[key]

    def times_called(self, folder: str, name: str) -> int:
        """How often something of that name is called in the files below the folder."""
        key = folder, name
        if key not in self._times_called:
            called, defined = name.encode() + b"(", b"def " + name.encode() + b"("
            texts = self._texts_of(folder).values()
            self._times_called[key] = sum(
                text.count(called) - text.count(defined) for text in texts if called in text
            )
        return self._times_called[key]

    def passed_in_file(self, folder: str, path: str) -> Counter[tuple[bytes, bytes]]:
        """What the file, as it is on the disk, adds to what is passed below the folder."""
        key = folder, path
        if key not in self._passed_in:
            self._passed_in[key] = Counter(passed_in(self._texts_of(folder).get(path, b"")))
        return self._passed_in[key]

    def defined(self, folder: str, path: str, dotted: str) -> int:
        """How many functions and classes of the last name a file that calls one defines."""
        return defined_in(self._texts_of(folder)[path], dotted)

    def texts(self, folder: str) -> Iterable[bytes]:
        """Of the files below the folder."""
        return self._texts_of(folder).values()

    def _texts_of(self, folder: str) -> dict[str, bytes]:
        if folder not in self._texts:
            self._texts[folder] = dict(texts_below(folder, _TESTS, self._text_of))
        return self._texts[folder]


def gives_value(attribute: str) -> re.Pattern[bytes]:
    """What in a text may give an attribute another value than False or None."""
    name = re.escape(attribute).encode()
    assigned = rb"\.%s\b\s*(?::[^=\n]+)?[-+|&^*]?=(?!=)(?!\s*(?:False|None)\b)" % name
    unpacked = rb"\.%s\b\s*,[^=\n]*=(?!=)|,\s*\w+\.%s\b\s*=(?!=)" % (name, name)
    return re.compile(rb"%s|%s|['\"]%s['\"]" % (assigned, unpacked, name))


def builds_on_device(text: bytes) -> bool:
    return any(
        not text[text.rfind(b"\n", 0, each.start()) + 1 : each.start()].strip(b" \t")
        for each in _BUILDS_ON_DEVICE.finditer(text)
    )


def on_current_gpu(text: bytes) -> int:
    """How often it writes `.cuda()`."""
    return len(_ON_CURRENT_GPU.findall(text))


def makes_default(text: bytes) -> bool:
    """It makes a GPU the default device."""
    return b"set_default_" in text and _MAKES_GPU_DEFAULT.search(text) is not None


def makes_property(name: str) -> re.Pattern[bytes]:
    """What in a text defines a property of that name."""
    return re.compile(
        rb"@(?:\w+\.)?(?:cached_)?property[^\n]*\n\s*def[ \t]+%s\(" % re.escape(name).encode()
    )


def _add(
    found: dict[str, list[GuardedStatement]], moves: Iterator[tuple[str, GuardedStatement]]
) -> None:
    for key, each in moves:
        found.setdefault(key, []).append(each)
