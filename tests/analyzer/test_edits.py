"""Places in bytes, and edits that keep the layout."""

from __future__ import annotations

import ast

import pytest

from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.reading.source import Source
from tensortrail.findings import Safety

from .snippets import find, module_of


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"x = 1; target()\n", (1, 8)),
        ("s = '\U0001f525\U0001f525'; target()\n".encode(), (1, 11)),
        ("# é\ns = 'é'; target()\n".encode(), (2, 10)),
        (b"\xef\xbb\xbfx = 1; target()\n", (1, 8)),
        (b"a = 1\r\nx = 1; target()\r\n", (2, 8)),
        ("# coding: latin-1\ns = 'é'; target()\n".encode("latin-1"), (2, 10)),
    ],
)
def test_columns_count_code_points(data: bytes, expected: tuple[int, int]) -> None:
    call = next(node for node in ast.walk(ast.parse(data)) if isinstance(node, ast.Call))
    source = Source("a.py", data)
    site = source.site(*source.span(call))
    assert (site.line, site.column) == expected
    assert site.end_column - site.column == len("target()")
    if source.editable:
        assert data[site.start : site.end] == b"target()"


def wrapped(body: str, condition: str = "flag") -> str | None:
    module = module_of(body)
    statement = module.statement_of(find(module, "act()"))
    fix = module.wrap_in_if(statement, condition, Safety.UNSAFE)
    return apply(module.source.data, fix.edits).decode() if fix is not None else None


def test_a_statement_goes_under_an_if() -> None:
    assert wrapped("def f():\n    act()\n    b()\n") == (
        "def f():\n    if flag:\n        act()\n    b()\n"
    )


def test_the_files_own_indentation_is_kept() -> None:
    assert wrapped("def f():\n  for x in y:\n    act()\n") == (
        "def f():\n  for x in y:\n    if flag:\n      act()\n"
    )
    assert wrapped("def f():\n\tact()\n") == "def f():\n\tif flag:\n\t\tact()\n"


def test_text_in_several_lines_is_not_touched() -> None:
    body = 'def f():\n    x = act() + """\n  a\n b"""\n'
    assert wrapped(body) == 'def f():\n    if flag:\n        x = act() + """\n  a\n b"""\n'


def test_windows_line_ends_stay() -> None:
    module = module_of("pass")
    assert module is not None
    data = b"def f():\r\n    act()\r\n    b()\r\n"
    from tensortrail.analyzer.judging.module import PythonModule, open_project

    crlf = PythonModule("a.py", data, open_project())
    fix = crlf.wrap_in_if(crlf.statement_of(find(crlf, "act()")), "flag", Safety.UNSAFE)
    assert fix is not None
    assert apply(data, fix.edits) == (b"def f():\r\n    if flag:\r\n        act()\r\n    b()\r\n")


@pytest.mark.parametrize("body", ["def f():\n    a(); act()\n", "def f():\n    if x: act()\n"])
def test_a_shared_line_gets_no_fix(body: str) -> None:
    assert wrapped(body) is None


def test_a_fix_that_would_not_parse_is_none() -> None:
    module = module_of("x = act()\n")
    edit = module.replace(find(module, "act()"), "def")
    assert module.fix("break it", Safety.SAFE, edit) is None


def test_a_file_in_another_encoding_gets_no_fix() -> None:
    from tensortrail.analyzer.judging.module import PythonModule, open_project

    data = "# coding: latin-1\nx = act('é')\n".encode("latin-1")
    module = PythonModule("a.py", data, open_project())
    (call,) = module.nodes(ast.Call)
    assert module.fix("any", Safety.SAFE, module.replace(call, "b()")) is None
