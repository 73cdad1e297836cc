"""What a module does if it is run by itself, to try out what it is for."""

from __future__ import annotations

import ast
import os
from functools import partial

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.texts.programs import imported
from tensortrail.analyzer.judging.around import around_program
from tensortrail.patterns import pattern
from tensortrail.rules.shared.command_lines import COMMAND_LINES
from tensortrail.rules.shared.objects import last_name

_IS_TOLD = pattern(rb"\bargs?\b|\bargv\b|pars|\bmain\b|\binput\(")
"""What a program has that somebody runs: it is told what to do. Names only keep a finding here."""
_ASKED = ("sys.argv", "os.environ", "os.getenv")


def is_self_test(file: ProjectFile, node: ast.AST) -> bool:
    """It stands under `if __name__ == "__main__":` in a file that others import, and nothing there
    asks what to do."""
    block = next((each for each in file.tree.ancestors(node) if _is_of_main(each)), None)
    if block is None or not os.path.isfile(file.path):
        return False
    start, end = file.source.span(block)
    body = file.source.data[start:end].partition(b":")[2]
    told = _IS_TOLD.search(body) is not None or _asks_outside(file, block)
    return not told and _is_imported(file)


def _asks_outside(file: ProjectFile, block: ast.AST) -> bool:
    """It, or a function of the file that it calls, reads the command line or the environment."""
    called = {name for each in file.tree.nodes(ast.Call, block) if (name := last_name(each.func))}
    functions = [each for each in file.tree.nodes(ast.FunctionDef) if each.name in called]
    return any(_asks(file, each) for each in (block, *functions))


def _asks(file: ProjectFile, inside: ast.AST) -> bool:
    names = (*file.tree.nodes(ast.Name, inside), *file.tree.nodes(ast.Attribute, inside))
    dotted = [file.qualified(each) for each in names]
    return any(each.partition(".")[0] in COMMAND_LINES or each in _ASKED for each in dotted)


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
