"""What rules ask a file about the calls of other files."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from typing import TypeAlias, cast

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.asked_for import is_asked_for
from tensortrail.analyzer.facts.chosen_gpus import (
    NAMES_ACCELERATOR,
    OTHER_BACKEND,
    SETS_GPU,
    numbered_gpu,
)
from tensortrail.analyzer.facts.customs import (
    GPU,
    MAKE_DEFAULT,
    called_in,
    gives_value,
    is_off,
    makes_default,
    makes_property,
)
from tensortrail.analyzer.facts.namesakes import namesakes_in
from tensortrail.analyzer.facts.passed_on import passed_in
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import (
    folder_of_project,
    inside,
    known_top,
    top_of_project,
)
from tensortrail.analyzer.judging.reached import is_reached
from tensortrail.analyzer.syntax.guarded_statements import as_key
from tensortrail.analyzer.syntax.names import tidy
from tensortrail.analyzer.values import signatures
from tensortrail.rules.shared.functions import is_static
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Guard, GuardedStatement, Namesake, ProjectCall

_Found: TypeAlias = ProjectCall | Namesake | GuardedStatement
_MOST_FOR_A_CUSTOM = 8
"""Files on which it rests that something is usual in a project."""


class AsksForProjectCalls:
    """The part of a `Module` that answers how functions of the package are called in it."""

    def passed_in_project(self, call: ast.Call, keyword: str) -> int:
        file = cast("ProjectFile", self)
        first, _, name = file.qualified(call.func).rpartition(".")
        if first.partition(".")[0] == "torch" or not name:
            return 0
        key, folder = (name.encode(), keyword.encode()), _package(file)
        if folder is None:
            return self._passed_here[key]
        customs = file.project.customs
        passed = customs.passed(folder, name, keyword)
        if not passed:
            return 0
        before = customs.passed_in_file(folder, file.path)
        return passed + self._passed_here[key] - before[key]

    def usual_in_project(self, call: ast.Call, keyword: str) -> tuple[int, int]:
        file = cast("ProjectFile", self)
        name, folder = file.qualified(call.func).rpartition(".")[2], folder_of_project(file)
        if folder is None or not name:
            return 0, 0
        customs = file.project.customs
        passed = customs.passed(folder, name, keyword)
        return passed, customs.times_called(folder, name) if passed else 0

    def gpu_made_default(self) -> tuple[str, int] | None:
        file = cast("ProjectFile", self)
        folder = _package(file)
        if folder is None:  # the places know of the file itself
            return None
        found = file.project.customs.gpu_made_default(folder)
        if found is None:
            file.absent.update(MAKE_DEFAULT)
        else:
            file.project.rest_on_all_of(file, [found[0]])
        return found

    def is_for_current_gpu(self) -> bool:
        file = cast("ProjectFile", self)
        folder = _around(file)
        found = file.project.customs.for_current_gpu(folder) if folder is not None else ()
        for path in found[:_MOST_FOR_A_CUSTOM]:
            self._is_so_in(path, texts_asked.on_current_gpu)
        return bool(found)

    def numbered_gpu(self) -> tuple[str, int] | None:
        file = cast("ProjectFile", self)
        if line := numbered_gpu(file.source.data):
            return os.path.basename(file.path), line
        if not os.path.isfile(file.path):
            return None
        name, own = os.path.basename(file.path), os.path.dirname(file.path)
        customs, top = file.project.customs, top_of_project(_folder_of(file))
        numbered = customs.numbered_gpus(top)
        program = list(customs.of_one_program(top, file.path)) if numbered else []
        beside = [each for each in numbered if os.path.dirname(each) == own]
        path = next((each for each in (*beside, *program) if each in numbered), None)
        if path is None:
            file.absent.update((GPU, name.partition(".")[0]))  # who numbers one, or imports this
            file.project.rest_on_all_of(file, program)
            return None
        line = numbered[path]
        file.project.rest_on(file, path, lambda: line, texts_asked.numbered_gpu, "")
        if path not in beside:
            file.project.rest_on_all_of(file, program[: program.index(path)])
        return os.path.relpath(path, top), line

    def sets_current_gpu(self) -> bool:
        file = cast("ProjectFile", self)
        if SETS_GPU.search(file.source.data):
            return True
        if not os.path.isfile(file.path):
            return False
        top, word = top_of_project(_folder_of(file)), "set_device"
        found = file.project.customs.is_written(top, word, SETS_GPU)
        return self._is_so_in(found, texts_asked.sets_gpu, word)

    def names_other_backend(self) -> bool:
        return self._is_in_program(OTHER_BACKEND)

    def may_use_gpu(self) -> bool:
        file = cast("ProjectFile", self)
        if NAMES_ACCELERATOR.search(file.source.data) or not os.path.isfile(file.path):
            return True
        return self._is_in_program(NAMES_ACCELERATOR)

    def _is_in_program(self, how: re.Pattern[bytes]) -> bool:
        """The file has it in its text, or one that comes to import it."""
        file = cast("ProjectFile", self)
        if not os.path.isfile(file.path):
            return False
        top, customs, looked_at = top_of_project(_folder_of(file)), file.project.customs, set[str]()
        for path in customs.of_one_program(top, file.path):
            looked_at.add(path)
            if customs.is_written_in(top, path, how):
                file.project.rest_on_all_of(file, looked_at)
                return True
        file.project.rest_on_all_of(file, looked_at)
        file.absent.add(os.path.basename(file.path).partition(".")[0])  # who imports this
        return False

    def default_set_for(self, name: str) -> bool:
        file = cast("ProjectFile", self)
        folder, uses = _package(file), file.project.uses
        found = uses.named_beside(folder, name, makes_default) if folder is not None else None
        return self._is_so_in(found, texts_asked.makes_default, name)

    def builds_on_device(self) -> bool:
        file = cast("ProjectFile", self)
        folder = _around(file)
        found = file.project.customs.builds_on_device(folder) if folder is not None else None
        return self._is_so_in(found, texts_asked.builds_on_device)

    def is_set_in_project(self, attribute: str) -> bool:
        return self._is_written(attribute, gives_value(attribute), texts_asked.gives_value)

    def is_property_in_project(self, name: str) -> bool:
        return self._is_written(name, makes_property(name), texts_asked.makes_property)

    def _is_written(
        self, word: str, how: re.Pattern[bytes], question: Callable[..., object]
    ) -> bool:
        """This file, or another of the package, has the word in such a place."""
        file = cast("ProjectFile", self)
        if how.search(file.source.data):
            return True
        folder, customs = _package(file), file.project.customs
        found = customs.is_written(folder, word, how) if folder is not None else None
        return self._is_so_in(found, question, word)

    def _is_so_in(self, path: str | None, question: Callable[..., object], *words: str) -> bool:
        """Whether there is such a file. What is found here rests on it then; if there is none, on
        the absence of the words."""
        file = cast("ProjectFile", self)
        if path is None:
            file.absent.update(words)
        if path is None or path == file.path:
            return path is not None
        if path.endswith(".py"):
            file.project.rest_on(file, path, lambda: True, question, "", *words)
        else:
            file.project.rest_on_all_of(file, [path])
        return True

    @cached_property
    def _passed_here(self) -> Counter[tuple[bytes, bytes]]:
        return Counter(passed_in(cast("ProjectFile", self).source.data))

    def is_of_project(self, call: ast.Call) -> bool:
        file = cast("ProjectFile", self)
        return signatures.is_defined(file, file.qualified(call.func))

    def is_used(self, node: ast.AST) -> bool:
        if not self._is_named(node) or self._is_switched_off(node):
            return False
        return not self._waits_for_nobody(node)

    def _is_switched_off(self, node: ast.AST) -> bool:
        """`if self.exact:` is around it, the class says `self.exact = False`, and nothing of the
        project gives it another value."""
        file = cast("ProjectFile", self)
        cls = file.tree.class_of(node)
        tests = [guard.test for guard in file.guards_of(node) if guard.holds and guard.exact]
        asked = {each.attr for each in tests if isinstance(each, ast.Attribute)}
        if cls is None or not asked or _package(file) is None:
            return False
        said = [
            target.attr
            for statement in file.tree.nodes(ast.Assign, cls)
            for target in statement.targets
            if isinstance(target, ast.Attribute) and target.attr in asked
        ]
        return any(not self.is_set_in_project(each) for each in said)

    def _waits_for_nobody(self, node: ast.AST) -> bool:
        """A function does it only if it is asked to, and nobody of the project asks for it; a
        method, that its class does not ask for."""
        file = cast("ProjectFile", self)
        function = file.tree.function_of(node)
        if function is None or function.name == "forward" or function.name.startswith("__"):
            return False  # called by what calls the object
        wanted = {name for name in map(_asked_by, file.guards_of(node)) if name}
        if wanted:
            wanted -= self._given_values_in(function)
        above = file.tree.parent(function)
        if isinstance(above, ast.ClassDef):
            return any(
                name in wanted and not self._is_asked_for(function.name, place, name)
                for place, name in _of_choice(function)
            )
        return isinstance(above, ast.Module) and any(
            name in wanted and self._is_never_on(function, place + 1, name)
            for place, name in _of_choice(function)
        )

    def _given_values_in(self, function: FunctionNode) -> set[str]:
        """What the function gives another value, but where it has one."""
        file = cast("ProjectFile", self)
        return {
            each.id
            for each in file.tree.nodes(ast.Name, function)
            if isinstance(each.ctx, ast.Store)
            and each.id not in map(_asked_by, file.guards_of(each))
        }

    def _is_never_on(self, function: FunctionNode, place: int, name: str) -> bool:
        calls = self.calls_of(function)
        return bool(calls) and not any(
            each.is_open or {place, name} & ((each.given | each.written) - each.off)
            for each in calls
        )

    def _is_asked_for(self, method: str, place: int, name: str) -> bool:
        key = method, place, name
        if key not in self._asked_for:
            file = cast("ProjectFile", self)
            folder = _package(file)
            others = file.project.customs.texts(folder) if folder is not None else ()
            texts = (file.source.data, *others)
            self._asked_for[key] = is_asked_for(texts, *key)
        return self._asked_for[key]

    @cached_property
    def _asked_for(self) -> dict[tuple[str, int, str], bool]:
        return {}

    def _is_named(self, node: ast.AST) -> bool:
        file = cast("ProjectFile", self)
        folder = _package(file) or _project_of_script(file)
        return folder is None or is_reached(file, folder, node)

    def calls_in_project(self, call: ast.Call) -> Sequence[ProjectCall]:
        file = cast("ProjectFile", self)
        return self._calls_in_project(file.qualified(call.func)) if self.is_of_project(call) else ()

    def calls_of(self, node: FunctionNode | ast.ClassDef) -> Sequence[ProjectCall]:
        file = cast("ProjectFile", self)
        return self._calls_in_project(f"{file.name}.{file.tree.qualname_of(node)}", namesakes=True)

    def _calls_in_project(self, dotted: str, namesakes: bool = False) -> Sequence[ProjectCall]:
        file = cast("ProjectFile", self)
        customs = file.project.customs
        own = called_in(file.path, file.source.data, dotted)
        folder = _package(file)
        if folder is None:
            return own if "." not in file.local_name(dotted) else ()
        found = customs.calls(folder, dotted, namesakes)
        self._rest_on(found, texts_asked.calls, dotted)
        for path in {each.path for each in found}:
            defined = partial(customs.defined, folder, path, dotted)
            file.project.rest_on(file, path, defined, texts_asked.defined, "", dotted)
        others = [each for each in found if each.path != file.path]
        return [*own, *others] if found else ()

    def namesakes_of(self, call: ast.Call) -> Sequence[Namesake]:
        file = cast("ProjectFile", self)
        func = call.func
        name = getattr(func, "attr", getattr(func, "id", ""))
        if not name or _is_of_a_library(file, func):
            return ()
        folder = _package(file)
        if folder is None:
            return list(namesakes_in(file.path, file.source.data, name))
        found = file.project.customs.namesakes(folder, name)
        self._rest_on(found, texts_asked.namesakes, name)
        return found

    def same_moves_in_project(self, statement: ast.stmt) -> Sequence[GuardedStatement]:
        file = cast("ProjectFile", self)
        folder = _package(file)
        if folder is None:
            return ()
        key = as_key(file.source.text(*file.source.span(statement)))
        found = file.project.customs.moves(folder, key)
        others = [each for each in found if each.path != file.path]
        self._rest_on(others, texts_asked.moves, key)
        return others

    def _rest_on(self, found: Sequence[_Found], question: Callable[..., object], word: str) -> None:
        """The files in which something was found, and what was: many a name is in thousands."""
        if not found or (question, word) in self._rested_on:
            return
        self._rested_on.add((question, word))
        file = cast("ProjectFile", self)
        by_path: dict[str, list[_Found]] = {}
        for each in found:
            by_path.setdefault(each.path, []).append(each)
        for path, said in by_path.items():
            file.project.rest_on(file, path, partial(list, said), question, "", word)

    @cached_property
    def _rested_on(self) -> set[tuple[Callable[..., object], str]]:
        return set()


def _asked_by(guard: Guard) -> str:
    """`flag` of `if flag:` and `if flag is not None:`, under which the code stands."""
    if not guard.exact:
        return ""
    match guard.test:
        case ast.Name(name) if guard.holds:
            return name
        case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as sign], [ast.Constant(None)]):
            return name if guard.holds is isinstance(sign, ast.IsNot) else ""
    return ""


def _of_choice(method: FunctionNode) -> Iterator[tuple[int, str]]:
    """Parameters that are off unless a call asks for them: the place without `self`, and the
    name."""
    given = [each.arg for each in (*method.args.posonlyargs, *method.args.args)]
    first = len(given) - len(method.args.defaults)
    own = 0 if is_static(method) else 1
    for place, default in enumerate(method.args.defaults, first):
        if is_off(default):
            yield place - own, given[place]
    for each, kept in zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True):
        if is_off(kept):
            yield len(given), each.arg


def _package(file: ProjectFile) -> str | None:
    """The folder of the package that the file is in; without one the file is all there is."""
    package, below, _ = file.name.partition(".")
    return _folder(file.root, package) if below and file.root is not None else None


@lru_cache
def _folder(root: str, package: str) -> str:
    """The same object each time: what is kept is kept by it."""
    return inside(root, package)


def _project_of_script(file: ProjectFile) -> str | None:
    """The top of the project that a file is in which is in no package."""
    return known_top(_folder_of(file)) if os.path.isfile(file.path) else None


def _folder_of(file: ProjectFile) -> str:
    return os.path.dirname(tidy(file.path)) or os.curdir


def _around(file: ProjectFile) -> str | None:
    """The package; of a file that is in none, what looks like the project."""
    folder = _package(file)
    if folder is None and os.path.isfile(file.path):
        folder = top_of_project(_folder_of(file))
    return folder


def _is_of_a_library(file: ProjectFile, func: ast.expr) -> bool:
    """It begins with a name that is imported from elsewhere, or with `super()`."""
    while isinstance(func, (ast.Attribute, ast.Subscript)):
        func = func.value
    if not isinstance(func, ast.Name):
        return isinstance(func, ast.Call)
    imported = file.names.imported.get(func.id)
    return imported is not None and imported.partition(".")[0] not in (
        "",
        file.name.partition(".")[0],
    )
