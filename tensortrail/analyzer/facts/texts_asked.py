"""What the texts of files are asked for other files: questions that can be asked again later."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.analyzer.facts.customs import called_in, defined_in, namesakes_in
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.uses import is_named
from tensortrail.analyzer.syntax.guarded_statements import moves_in
from tensortrail.rules.words import GuardedStatement, Namesake, ProjectCall


def namesakes(file: ProjectFile, root: ast.AST, name: str) -> Sequence[Namesake]:
    return list(namesakes_in(file.path, file.source.data, name))


def calls(file: ProjectFile, root: ast.AST, dotted: str) -> Sequence[ProjectCall]:
    return called_in(file.path, file.source.data, dotted)


def defined(file: ProjectFile, root: ast.AST, dotted: str) -> int:
    return defined_in(file.source.data, dotted)


def moves(file: ProjectFile, root: ast.AST, key: str) -> Sequence[GuardedStatement]:
    return [each for found, each in moves_in(file.path, file.source.data) if found == key]


def has_name(file: ProjectFile, root: ast.AST, name: str) -> bool:
    return is_named(file.source.data, name)
