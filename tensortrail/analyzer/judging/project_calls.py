"""What rules ask a file about the calls of other files."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import cast

from tensortrail.analyzer.facts.customs import gives_value, has_property, namesakes_in, passed_in
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.uses import is_named
from tensortrail.analyzer.syntax.guarded_statements import as_key
from tensortrail.analyzer.values import signatures
from tensortrail.rules.words import GuardedStatement, Namesake, ProjectCall

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class AsksForProjectCalls:
    """The part of a `Module` that answers how functions of the package are called in it."""

    def passed_in_project(self, call: ast.Call, keyword: str) -> int:
        file = cast("ProjectFile", self)
        first, _, name = file.qualified(call.func).rpartition(".")
        package, inside, _ = file.name.partition(".")
        if first.partition(".")[0] == "torch" or not name:
            return 0
        if not inside or file.root is None:  # no package: the file is all there is
            return self._passed_here[name.encode(), keyword.encode()]
        key = name.encode(), keyword.encode()
        customs, folder = file.project.customs, file.root / package
        passed = customs.passed(folder, name, keyword)
        if not passed:
            return 0
        before = customs.passed_in_file(folder, file.path)
        return passed + self._passed_here[key] - before[key]

    def gpu_made_default(self) -> tuple[str, int] | None:
        file = cast("ProjectFile", self)
        package, inside, _ = file.name.partition(".")
        if not inside or file.root is None:  # no package: the places know of the file itself
            return None
        found = file.project.customs.gpu_made_default(file.root / package)
        if found is not None:
            file.needs.add(found[0])
        return found

    def is_set_in_project(self, attribute: str) -> bool:
        file = cast("ProjectFile", self)
        if gives_value(attribute).search(file.source.data):
            return True
        package, inside, _ = file.name.partition(".")
        if not inside or file.root is None:  # no package: the file is all there is
            return False
        return file.project.customs.is_set(file.root / package, attribute)

    def is_property_in_project(self, name: str) -> bool:
        file = cast("ProjectFile", self)
        if has_property(file.source.data, name):
            return True
        package, inside, _ = file.name.partition(".")
        if not inside or file.root is None:  # no package: the file is all there is
            return False
        return file.project.customs.is_property(file.root / package, name)

    @cached_property
    def _passed_here(self) -> Counter[tuple[bytes, bytes]]:
        return Counter(passed_in(cast("ProjectFile", self).source.data))

    def is_of_project(self, call: ast.Call) -> bool:
        file = cast("ProjectFile", self)
        return signatures.is_defined(file, file.qualified(call.func))

    def is_used(self, node: ast.AST) -> bool:
        file = cast("ProjectFile", self)
        above = [node, *file.tree.ancestors(node)]
        around = [each for each in above if isinstance(each, _NAMED)]
        package, inside, _ = file.name.partition(".")
        if not around or around[-1].decorator_list or not inside or file.root is None:
            return True
        if any(isinstance(each, ast.arguments) for each in above):
            return True  # a default, which the import works out
        outer, text = around[-1], file.source.data
        start, end = file.source.span(outer)
        if is_named(text[:start], outer.name) or is_named(text[end:], outer.name):
            return True
        found = file.project.uses.named_in(file.root / package, outer.name, file.path)
        if found:
            file.needs.add(found)
        return found is not None

    def calls_in_project(self, call: ast.Call) -> Sequence[ProjectCall]:
        file = cast("ProjectFile", self)
        dotted = file.qualified(call.func)
        if not self.is_of_project(call):
            return ()
        customs = file.project.customs
        own = customs.calls_in_file(file.path, file.source.data, dotted)
        package, inside, _ = file.name.partition(".")
        if not inside or file.root is None:  # no package: the file is all there is
            return own if "." not in file.local_name(dotted) else ()
        found = customs.calls(file.root / package, dotted)
        file.needs.update(each.path for each in found)
        others = [each for each in found if each.path != file.path]
        return [*own, *others] if found else ()

    def namesakes_of(self, call: ast.Call) -> Sequence[Namesake]:
        file = cast("ProjectFile", self)
        func = call.func
        name = getattr(func, "attr", getattr(func, "id", ""))
        package, inside, _ = file.name.partition(".")
        if not name or _is_of_a_library(file, func, package):
            return ()
        if not inside or file.root is None:  # no package: the file is all there is
            return list(namesakes_in(file.path, file.source.data, name))
        found = file.project.customs.namesakes(file.root / package, name)
        file.needs.update(each.path for each in found)
        return found

    def same_moves_in_project(self, statement: ast.stmt) -> Sequence[GuardedStatement]:
        file = cast("ProjectFile", self)
        package, inside, _ = file.name.partition(".")
        if not inside or file.root is None:  # no package: the file is all there is
            return ()
        key = as_key(file.source.text(*file.source.span(statement)))
        found = file.project.customs.moves(file.root / package, key)
        others = [each for each in found if each.path != file.path]
        file.needs.update(each.path for each in others)
        return others


def _is_of_a_library(file: ProjectFile, func: ast.expr, package: str) -> bool:
    """It begins with a name that is imported from elsewhere, or with `super()`."""
    while isinstance(func, (ast.Attribute, ast.Subscript)):
        func = func.value
    if not isinstance(func, ast.Name):
        return isinstance(func, ast.Call)
    imported = file.names.imported.get(func.id)
    return imported is not None and imported.partition(".")[0] not in ("", package)
