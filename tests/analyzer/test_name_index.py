"""Names and attributes are found by what they are called, in the file and inside of a node."""

from __future__ import annotations

import ast
from pathlib import Path

from tensortrail.analyzer.judging.module import PythonModule, open_project

_CODE = """\
x = net.x

def f(x):
    y = x.x
    return x

def g():
    return x
"""


def _module(tmp_path: Path) -> PythonModule:
    return PythonModule(str(tmp_path / "a.py"), _CODE.encode(), open_project())


def test_uses_and_members_are_those_that_a_walk_finds(tmp_path: Path) -> None:
    module = _module(tmp_path)
    for inside in (None, module.top, *module.nodes(ast.FunctionDef)):
        names = [each for each in module.nodes(ast.Name, inside) if each.id == "x"]
        members = [each for each in module.nodes(ast.Attribute, inside) if each.attr == "x"]
        assert list(module.uses("x", inside)) == names
        assert list(module.members("x", inside)) == members
    assert [each.lineno for each in module.uses("x", module.nodes(ast.FunctionDef)[0])] == [4, 5]


def test_a_name_that_is_not_there_has_no_uses(tmp_path: Path) -> None:
    assert not module_uses(_module(tmp_path), "z")


def module_uses(module: PythonModule, name: str) -> list[ast.expr]:
    return [*module.uses(name), *module.members(name)]
