"""Calls of a function in the texts of files. A text is searched for the name, as plain bytes, and
looked at only where that is found."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator, Mapping, Sequence

from tensortrail.analyzer.facts.texts.namesakes import in_parentheses
from tensortrail.analyzer.facts.texts.passed_on import name_before
from tensortrail.analyzer.syntax.text_blocks import is_switched_off
from tensortrail.patterns import pattern
from tensortrail.rules.project_facts import ProjectCall

_MOST_CALLS = 500
"""Calls of one name: of more nothing is said."""
_IN_WORDS = pattern(rb"#|>>>|`$|\.\.\. ")
"""What stands before a call on its line in a comment or a docstring."""
_DEFINING = pattern(rb"[ \t]*(?:async[ \t]+def|def|class)[ \t]+")
"""What stands before a name on the line that defines it."""
_LONGEST_NAME = 100
_BLANKS = (b" ", b"\t")
_NAME = pattern(rb"\w")


def calls_in(
    texts: Mapping[str, bytes], dotted: str, namesakes: bool = False
) -> Sequence[ProjectCall]:
    """Calls of a function in these files, one of which defines it, and of others of its name."""
    owner, _, name = dotted.rpartition(".")
    word = name.encode()
    having = [path for path, text in texts.items() if word + b"(" in text]
    if not namesakes and sum(defined_in(texts[path], name) for path in having) != 1:
        return ()
    return _called(texts, having, owner, word)


def called_in(path: str, text: bytes, dotted: str) -> Sequence[ProjectCall]:
    """Calls of a function in one file, which need not define it."""
    owner, _, name = dotted.rpartition(".")
    return _called({path: text}, [path], owner, name.encode())


def defined_in(text: bytes, dotted: str) -> int:
    """How many functions and classes have the last name, if the file has a call of it."""
    word = dotted.rpartition(".")[2].encode()
    if word + b"(" not in text:
        return 0
    return sum(_is_defined(text, at, at + len(word)) for at in _places(text, word))


def _is_defined(text: bytes, at: int, end: int) -> bool:
    """The name there is one of a definition on this line."""
    if text[at - 1 : at] not in _BLANKS or _NAME.match(text, end):
        return False  # most are calls
    return _DEFINING.fullmatch(text, text.rfind(b"\n", 0, at) + 1, at) is not None


def _places(text: bytes, word: bytes) -> Iterator[int]:
    """Where the bytes stand, be it inside of a longer name."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _called(
    texts: Mapping[str, bytes], having: Sequence[str], owner: str, word: bytes
) -> Sequence[ProjectCall]:
    owners = {each.encode() for each in owner.split(".")}
    own = owner.partition(".")[0].encode()
    found: list[ProjectCall] = []
    for path in having:
        text = texts[path]
        places = list(_calling(text, word, owners))
        if not places or _is_imported_from_a_library(text, word, own):
            continue
        for start, opening in places:
            if len(found) >= _MOST_CALLS:
                return ()
            call = parsed_call(text, opening)
            if call is not None:
                line = text.count(b"\n", 0, start) + 1
                found.append(_as_call(path, line, call, is_switched_off(text, start)))
    return found


def _calling(text: bytes, word: bytes, owners: Container[bytes]) -> Iterator[tuple[int, int]]:
    """Where code may call it by its name alone, or as of one of the owners, and the parenthesis."""
    for at in _places(text, word + b"("):
        start = _start_of_call(text, at, owners)
        if start is not None and not _IN_WORDS.search(text, text.rfind(b"\n", 0, start) + 1, start):
            yield start, at + len(word)


def _start_of_call(text: bytes, at: int, owners: Container[bytes]) -> int | None:
    """None for the end of a longer name, a definition, and a method of some object."""
    before = text[max(0, at - 1) : at]
    if before == b".":
        owner = name_before(text, at - 1, _LONGEST_NAME)
        start = at - 1 - len(owner)
        return start if owner in owners and text[max(0, start - 1) : start] != b"." else None
    is_defined = text.endswith((b"def ", b"class "), 0, at)
    return None if is_defined or _NAME.match(before) else at


def _is_imported_from_a_library(text: bytes, name: bytes, own: bytes) -> bool:
    for match in re.finditer(rb"^[ \t]*from[ \t]+([\w.]+)[ \t]+import\b([^\n(]*)", text, re.M):
        module = match.group(1)
        ours = module.startswith(b".") or module.partition(b".")[0] == own
        if not ours and re.search(rb"\b%s\b" % name, match.group(2)):
            return True
    return False


def parsed_call(text: bytes, start: int) -> ast.Call | None:
    """The call whose parenthesis begins there; None for a definition, or words in a sentence."""
    for inside in in_parentheses(text, start):
        try:
            tree = ast.parse(b"_" + inside, mode="eval").body
        except (SyntaxError, ValueError, MemoryError):
            continue  # a parenthesis in a string
        return tree if isinstance(tree, ast.Call) else None
    return None


def _as_call(path: str, line: int, call: ast.Call, unreached: bool) -> ProjectCall:
    passed: list[tuple[str | int, ast.expr]] = [*enumerate(call.args)]
    passed += [(each.arg, each.value) for each in call.keywords if each.arg is not None]
    written = frozenset(key for key, value in passed if isinstance(value, ast.Constant))
    off = frozenset(key for key, value in passed if is_off(value))
    given = frozenset(key for key, _ in passed) - written
    is_open = any(each.arg is None for each in call.keywords)
    is_open = is_open or any(isinstance(each, ast.Starred) for each in call.args)
    return ProjectCall(path, line, given, written, off, is_open, unreached)


def is_off(value: ast.expr | None) -> bool:
    """`False` or `None`"""
    return isinstance(value, ast.Constant) and value.value in (False, None)
