"""The ways through a tree: what runs later, what ran earlier, what leaves; how it is kept."""

from __future__ import annotations

import ast

import pytest

from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.analyzer.syntax.trees import Trees
from tensortrail.rules.text_of import text_of

from .snippets import find, module_of


def names(body: str, direction: str) -> list[str]:
    module = module_of(body)
    here = find(module, "here()")
    found = getattr(module, direction)(here, ast.Call)
    return [module.text(each) for each in found]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def f():\n    a()\n    here()\n    b()\n    c()\n", ["b()", "c()"]),
        ("def f():\n    if x:\n        here()\n    else:\n        a()\n    b()\n", ["b()"]),
        ("def f():\n    if x:\n        here()\n        return\n    b()\n", []),
        ("def f():\n    for x in y:\n        a()\n        here()\n        b()\n", ["b()", "a()"]),
        ("def f():\n    while t():\n        here()\n    b()\n", ["b()", "t()"]),
        (
            "def f():\n    try:\n        here()\n    finally:\n        b()\n    c()\n",
            ["b()", "c()"],
        ),
        (
            "def f():\n    try:\n        t()\n    except A:\n        here()\n"
            "    except B:\n        a()\n    b()\n",
            ["b()"],
        ),
        (
            "def f():\n    match x:\n        case 1:\n            here()\n"
            "        case _:\n            a()\n    b()\n",
            ["b()"],
        ),
        ("def f():\n    outer(here())\n", ["outer(here())"]),
        ("def f():\n    here()\ndef g():\n    b()\n", []),
    ],
)
def test_later(body: str, expected: list[str]) -> None:
    assert names(body, "later") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    x = f(x, y)\n    z = x\n", "f x y x= x z="),
        ("    x = y = f(z)\n", "f z x= y="),
        ("    x += y\n", "y x="),
        ("    x: T = x.y\n", "T x x="),
        ("    x[i] = y\n", "x i y"),
        ("    for x in x.parts:\n        x\n", "x x= x"),
        ("    if (x := x + y):\n        x\n", "x= x y x"),
        ("    x: T\n    y\n", "x= T y"),
        ("    x = 1\n    del x\n    x\n", "x= x= x"),
    ],
)
def test_names_are_bound_behind_what_they_are_bound_to(body: str, expected: str) -> None:
    module = module_of(f"def f():\n    here()\n{body}")
    found = module.later(find(module, "here()"), ast.Name)
    told = [each.id + "=" * (not isinstance(each.ctx, ast.Load)) for each in found]
    assert " ".join(told) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def f():\n    a()\n    b()\n    here()\n    c()\n", ["b()", "a()"]),
        ("def f():\n    a()\n    if t():\n        here()\n", ["t()", "a()"]),
        ("def f():\n    if x:\n        a()\n    else:\n        here()\n", []),
        ("def g():\n    b()\ndef f():\n    here()\n", []),
        ("def f():\n    a(); here(); b()\n", ["a()"]),
        ("def f():\n    try:\n        a()\n    except E:\n        here()\n", ["a()"]),
        (
            "def f():\n    z()\n    try:\n        a()\n    finally:\n        b()\n        here()\n",
            ["b()", "a()", "z()"],
        ),
    ],
)
def test_earlier(body: str, expected: list[str]) -> None:
    assert names(body, "earlier") == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("return 1", True),
        ("raise E", True),
        ("x = 1", False),
        ("if a:\n    return\nelse:\n    raise E", True),
        ("if a:\n    return", False),
        ("with a:\n    return", True),
        ("try:\n    return\nexcept E:\n    pass", False),
        ("try:\n    return\nexcept E:\n    raise", True),
        ("try:\n    a()\nfinally:\n    return", True),
        ("for x in y:\n    return", False),
    ],
)
def test_leaves(statement: str, expected: bool) -> None:
    body = "def f():\n" + "".join(f"    {line}\n" for line in statement.split("\n"))
    tree = Tree(ast.parse(body))
    [function] = tree.nodes(ast.FunctionDef)
    assert (function.body[0] in tree.leaving) is expected


def test_contexts_are_told_innermost_first() -> None:
    module = module_of("def f():\n    with a(), b():\n        with c():\n            here()\n")
    contexts = module.contexts_of(find(module, "here()"))
    assert [module.text(each) for each in contexts] == ["c()", "b()", "a()"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.nn.Linear", True),
        ("len", True),
        ("F.relu", False),  # a constant of another file might be called so
        ("given.view", False),
        ("own", False),
        ("made.run", False),
        ("patched.load", False),
        ("made()", False),
    ],
)
def test_of_names_that_nothing_is_said_about_no_value_is_followed(
    line: str, expected: bool
) -> None:
    module = module_of(
        "import torch, patched\nimport torch.nn.functional as F\npatched.load = len\n"
        f"def own(given):\n    made = given\n    {line}\n"
    )
    assert module.tree.is_unbound(find(module, line)) is expected


def test_a_tree_that_somebody_has_is_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensortrail.analyzer.syntax.trees._KEPT", 1)
    trees = Trees()
    held = trees.of("a.py", b"a = 1\n")
    trees.of("b.py", b"b = 1\n")
    assert trees.of("a.py", b"a = 1\n") is held
    assert trees.of("a.py", b"a = 2\n") is not held


@pytest.mark.parametrize(
    "written",
    "x|x.y.z|x is not None|x.y != 0|not x.y|-1|'x'.y|f(x).y|x[0].y|x == 'a'|a < b < c|not (x or y)"
    "|(x is None) is True|not (not x)|(x := y) in z|x in (1, 2)|1e3 == x|10 ** 9 > x|True|None is x"
    "|1000000 == x|...|b'a' == x|x not in y.z|(not x) == y|x.y is (not z)"
    "|a and b|a or not b|not a and not b and not c|a or b or c < d or e < f"
    "|a < b and c < d and e < f|a and (b or c)|f(x, y=z)|f(*x)|f(**x)|f(x)(y)|x['a']|x[1:]"
    "|x[0].y and z[i]|u'a'|f('a', 1)|'a\\n'|a and (b if c else d)|a and f(x) or b"
    "|x['a'] is None and not y".split("|"),
)
def test_plain_expressions_are_written_as_python_writes_them(written: str) -> None:
    node = ast.parse(written, mode="eval").body
    assert text_of(node) == text_of(node) == ast.unparse(node)
