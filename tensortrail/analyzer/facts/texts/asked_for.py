"""Whether a call asks for what a method does on request alone: read from texts of a project."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tensortrail.analyzer.facts.texts.written_calls import is_off, parsed_call

_OWN = re.compile(rb"\bself\s*\.\s*$")


def is_asked_for(texts: Iterable[bytes], method: str, position: int, parameter: str) -> bool:
    """Some call gives the parameter, or may; or not all calls are `self.method(...)`, so that
    who else calls it is not known; or there is none."""
    calls = [each for text in texts for each in _calls(text, method.encode())]
    return not calls or not all(
        call is not None and not _gives(call, position, parameter) for call in calls
    )


def _calls(text: bytes, name: bytes) -> Iterator[ast.Call | None]:
    """Those of a name; None for what is not called of `self`, or cannot be read."""
    if name not in text:
        return
    for match in re.finditer(rb"(?<!def )\b%s\(" % name, text):
        own = _OWN.search(text[max(0, match.start() - 20) : match.start()])
        yield parsed_call(text, match.end() - 1) if own else None


def _gives(call: ast.Call, position: int, parameter: str) -> bool:
    is_open = any(isinstance(each, ast.Starred) for each in call.args)
    is_open = is_open or any(each.arg is None for each in call.keywords)
    named = (each.value for each in call.keywords if each.arg == parameter)
    return is_open or len(call.args) > position or any(not is_off(each) for each in named)
