"""Code that tests whether a model is offloaded may be wrong about it.

Such tests are looked for in the functions that run when a weight was not brought."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tensortrail.rules.shared.offload_tests import ON_CPU, SEVERAL, incomplete_in
from tensortrail.tracer.identity.sites import OURS, OWNERS, PLUMBING, function_name, outwards

MOST_FRAMES = 40
LONGEST_TEST = 200


class Test(NamedTuple):
    line: int
    kind: str
    text: str


class OffloadTests:
    def __init__(self) -> None:
        self._known: dict[CodeType, list[Test]] = {}

    def by(self, frame: FrameType | None, places: Collection[str]) -> dict[str, Any] | None:
        """The test in a running function that is false for a model that lies in these places."""
        for each in outwards(frame, MOST_FRAMES):
            code = each.f_code
            if OWNERS[code.co_filename] not in (OURS, PLUMBING):
                for test in self._tests(code):
                    if _is_false(test.kind, places):
                        return {
                            "file": code.co_filename,
                            "line": test.line,
                            "function": function_name(code),
                            "test": test.text,
                            "kind": test.kind,
                            "places": sorted(places),
                        }
        return None

    def _tests(self, code: CodeType) -> list[Test]:
        found = self._known.get(code)
        if found is None:
            found = self._known[code] = list(_read(code)) if "values" in code.co_names else []
        return found


def _is_false(kind: str, places: Collection[str]) -> bool:
    return (kind == SEVERAL and len(places) == 1) or (kind == ON_CPU and "cpu" not in places)


def _read(code: CodeType) -> Any:
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return
    for each in incomplete_in(tree):
        line = max(first, 1) + each.test.lineno - 1
        yield Test(line, each.kind, ast.unparse(each.test)[:LONGEST_TEST])
