"""What a module does if it is run by itself, to try out what it is for."""

from __future__ import annotations

import ast
import os
from functools import partial

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.programs import imported
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.judging.around import around_program
from tensortrail.patterns import pattern

_IS_TOLD = pattern(rb"\bargs?\b|\bargv\b|pars|\bmain\b|\binput\(")
"""What a program has that somebody runs: it is told what to do."""


def is_self_test(file: ProjectFile, node: ast.AST) -> bool:
    """It stands under `if __name__ == "__main__":` in a file that others import, and nothing there
    asks what to do."""
    block = next((each for each in file.tree.ancestors(node) if _is_of_main(each)), None)
    if block is None or not os.path.isfile(file.path):
        return False
    start, end = file.source.span(block)
    body = file.source.data[start:end].partition(b":")[2]
    return _IS_TOLD.search(body) is None and _is_imported(file)


def _is_of_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def _is_imported(file: ProjectFile) -> bool:
    """By another file, on which what is found here rests then."""
    top, customs = around_program(file), file.project.customs
    program = customs.of_one_program(top, file.path)
    other = next((each for each in program if each != file.path), None)
    if other is None:
        file.absent.add(os.path.basename(file.path).partition(".")[0])
        return False
    says = partial(imported, customs.text_in(top, other))
    file.project.rest_on(file, other, says, texts_asked.imports, "")
    return True
