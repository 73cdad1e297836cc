"""Asks a file that has changed what it was asked before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple

from tensortrail.analyzer.facts.answers import but_for_lines, digest, read
from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.reading.limits import MOST_SECONDS
from tensortrail.collector import without_collector


class Again(NamedTuple):
    """What a file that has changed says, which is what it said before."""

    answers: Mapping[str, str]
    needs: Collection[str]
    """The files on which its answers rest."""
    to_the_line: bool
    """What they name stands where it stood."""


_OURS = ("tensortrail.analyzer.", "tensortrail.rules.")
"""Where questions are taken from: what is asked may have been written down by somebody else."""


def asked_again(project: Project, path: str, asked: Mapping[str, str]) -> Again | None:
    """None unless all answers are those that were given, whatever stands in the way of them."""
    project.trim()
    project.limit.begin(MOST_SECONDS)
    now: dict[str, str] = {}
    try:
        with without_collector():
            file = project.module_at(path)
            for text, known in asked.items():
                now[text] = answer_to(project, file, text)
                if but_for_lines(now[text]) != but_for_lines(known):
                    return None
            return Again(now, file.needs if file is not None else (), now == asked)
    except Exception:
        return None


def answer_to(project: Project, file: ProjectFile | None, text: str) -> str:
    module, name, (definition, *words) = read(text)
    node = file.definition_named(definition) if definition and file is not None else None
    if file is None or (definition and node is None):
        return digest(None)
    with project.asked_anew():
        return digest(_question(module, name)(file, node or file.tree.root, *words))


def _question(module: str, name: str) -> Callable[..., Any]:
    found = getattr(import_module(module), name) if module.startswith(_OURS) else None
    if not isinstance(found, FunctionType) or found.__module__ != module:
        raise ValueError(f"{module}:{name} is no question of ours")
    return found
