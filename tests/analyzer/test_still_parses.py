"""The part of a file around some edits answers for the whole of it."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

import pytest

from tensortrail.analyzer.fixing import still_parses
from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.fixing.still_parses import Checker
from tensortrail.analyzer.reading.source import Source
from tensortrail.findings import Edit
from tensortrail.rules import all_rules

PLACES = '''\
"""Text."""
import a; import b
@decorated(1)
class C(Base):
    x = 1

    def f(self, t=2):
        if t.device == "cpu":
            act(t); more(t)
        elif t:  # why
            with a(), \\
                    b() as c: go()
        else:
            try:
                return """
text""" + t
            except (E, F) as e:
                raise
            finally:
                pass
        for x in t: print(x)
        match t:
            case [1, y] if y:
                z = f"{t!r}"
            case _:
                pass
\tif_tab = 1
async def g():
    return [await x for x in y]
'''.replace("\tif_tab = 1\n", "")
TEXTS = [
    "b", "b.c", "b.c == d", "", "(", ")", "x if y else z", "not b", "# c", "\n", "\n    b()\n",
    "b: c", "if b: c", "b;", "\\", '"""', "yield b", "lambda: 0", "*b", "b = c", "pass", "\n\n",
    ":", "b \\",
]  # fmt: skip


def parses(data: bytes) -> bool:
    try:
        ast.parse(data)
    except (SyntaxError, ValueError):
        return False
    return True


def sources() -> Iterator[str]:
    yield from [PLACES] * 10
    for rule in all_rules().values():
        for bad in rule.bad if rule.reads_code() else ():
            yield bad.source


@pytest.mark.filterwarnings("ignore:invalid decimal literal:SyntaxWarning")
@pytest.mark.parametrize(
    ("short", "most"),
    [(0, 8), *(pytest.param(each, 20, marks=pytest.mark.complete) for each in (0, 4000))],
)
def test_edits_of_nodes_are_judged_as_by_the_whole_file(
    short: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(still_parses, "_SHORT", short)
    monkeypatch.setattr(still_parses, "_SHARES", 10_000)
    chance = random.Random(0)
    compared = 0
    for text in sources():
        source = Source("a.py", text.encode())
        root = ast.parse(text)
        checker = Checker(source, root)
        nodes = [each for each in ast.walk(root) if isinstance(each, (ast.expr, ast.stmt))]
        for node in chance.sample(nodes, min(most, len(nodes))):
            start, end = source.span(node)
            for new in chance.sample(TEXTS, 4):
                at, to = chance.choice([(start, end), (start, start), (end, end)])
                edits = [Edit(source.site(at, to), new)]
                compared += 1
                whole = parses(apply(source.data, edits))
                held = checker.holds(edits)
                assert whole is held, apply(source.data, edits).decode()
    assert compared > 2000


def test_what_is_left_of_a_statement_begins_where_its_block_does() -> None:
    text = "def f(a, b):\n    c = a\n    a + b\n    return c\n"
    source = Source("a.py", text.encode())
    at = text.index("a + b")
    checker = Checker(source, ast.parse(text))
    assert not checker.holds([Edit(source.site(at, at + 1), "")])
    assert checker.holds([Edit(source.site(at, at + 2), "")])
