"""What the texts of files are asked for other files: questions that can be asked again later."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence, Set

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.texts import chosen_gpus, customs, project_texts
from tensortrail.analyzer.facts.texts.mentions import is_named
from tensortrail.analyzer.facts.texts.namesakes import namesakes_in
from tensortrail.analyzer.facts.texts.programs import imported
from tensortrail.analyzer.facts.texts.written_calls import called_in, defined_in
from tensortrail.analyzer.syntax.guarded_statements import moves_in
from tensortrail.rules.project_facts import GuardedStatement, Namesake, ProjectCall


def namesakes(file: ProjectFile, root: ast.AST, name: str) -> Sequence[Namesake]:
    return list(namesakes_in(file.path, file.source.data, name))


def calls(file: ProjectFile, root: ast.AST, dotted: str) -> Sequence[ProjectCall]:
    return called_in(file.path, file.source.data, dotted)


def defined(file: ProjectFile, root: ast.AST, dotted: str) -> int:
    return defined_in(file.source.data, dotted)


def moves(file: ProjectFile, root: ast.AST, key: str) -> Sequence[GuardedStatement]:
    return [each for found, each in moves_in(file.path, file.source.data) if found == key]


def builds_on_device(file: ProjectFile, root: ast.AST) -> bool:
    return customs.builds_on_device(file.source.data)


def on_current_gpu(file: ProjectFile, root: ast.AST) -> bool:
    """It writes `.cuda()`."""
    return customs.on_current_gpu(file.source.data) > 0


def makes_default(file: ProjectFile, root: ast.AST, name: str) -> bool:
    """It has the name, and makes a GPU the default device."""
    text = file.source.data
    return name.encode() in text and customs.makes_default(text)


def gives_value(file: ProjectFile, root: ast.AST, attribute: str) -> bool:
    return customs.gives_value(attribute).search(file.source.data) is not None


def makes_property(file: ProjectFile, root: ast.AST, name: str) -> bool:
    return customs.makes_property(name).search(file.source.data) is not None


def numbered_gpu(file: ProjectFile, root: ast.AST) -> int:
    return chosen_gpus.numbered_gpu(file.source.data)


def sets_gpu(file: ProjectFile, root: ast.AST, word: str) -> bool:
    """It sets the GPU that is current."""
    return bool(chosen_gpus.SETS_GPU.search(file.source.data))


def follows_tensor(file: ProjectFile, root: ast.AST, word: str) -> bool:
    """It makes the GPU of a tensor the current one."""
    return bool(chosen_gpus.FOLLOWS_TENSOR.search(file.source.data))


def launches_by_tensor(file: ProjectFile, root: ast.AST, word: str) -> bool:
    """It does so for a kernel."""
    return bool(chosen_gpus.LAUNCHES_BY_TENSOR.search(file.source.data))


def names_accelerator(file: ProjectFile, root: ast.AST) -> bool:
    return is_in(names_accelerator, file.source.data)


def chooses_cpu(file: ProjectFile, root: ast.AST) -> bool:
    return is_in(chooses_cpu, file.source.data)


def names_other_backend(file: ProjectFile, root: ast.AST) -> bool:
    return is_in(names_other_backend, file.source.data)


Searched = Callable[[ProjectFile, ast.AST], bool]
_SEARCHED: Mapping[Searched, re.Pattern[bytes]] = {
    names_accelerator: chosen_gpus.NAMES_ACCELERATOR,
    chooses_cpu: chosen_gpus.CHOOSES_CPU,
    names_other_backend: chosen_gpus.OTHER_BACKEND,
}
"""What is looked for in the texts of all files of a program."""


def is_in(question: Searched, text: bytes) -> bool:
    return _SEARCHED[question].search(text) is not None


def imports(file: ProjectFile, root: ast.AST) -> Set[bytes]:
    """All words of its imports: which files it is of one program with."""
    return imported(file.source.data)


def has_name(file: ProjectFile, root: ast.AST, name: str) -> bool:
    return is_named(file.source.data, name)


def is_program(file: ProjectFile, root: ast.AST, word: str) -> bool:
    """It has the word of a program."""
    return project_texts.is_program(file.path, file.source.data)
