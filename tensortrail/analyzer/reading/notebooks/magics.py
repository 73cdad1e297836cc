"""Lines that IPython understands and Python does not, put aside so that the rest can be judged.

`%matplotlib inline` becomes `pass#~%matplotlib inline`: a statement in the same place, from which
the line can be made again."""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

_PYTHON_CELLS = frozenset("capture debug ipytest prun time timeit wandb".split())
"""Magics whose cell is run in the notebook's own process."""
_ASIDE = "pass#~"
_VALUE = "None#~"
_MAGIC = re.compile(
    r"\s*(?:[%!?]|(?:pip|conda|cd|ls|cat|mkdir|rm|cp|mv)\s+[^\s=(]|[^#'\"]*[\w.\])]\?{1,2}\s*;?\s*$)"
)
_ASSIGNED = re.compile(r"(\s*[\w., \t]+=\s*)([%!].*)", re.DOTALL)
_MADE = re.compile(rf"(\s*){re.escape(_ASIDE)}")
_MADE_VALUE = re.compile(rf"(\s*[\w., \t]+=\s*){re.escape(_VALUE)}")
_MOST = 200
"""Lines of one cell that are put aside one by one."""


@dataclass(frozen=True)
class Cell:
    """The text of a code cell as Python can read it."""

    text: str = ""
    line: int = 0
    """Where it is no Python at all, the line that says so, from 1."""
    error: str = ""
    is_python: bool = True


def tamed(text: str) -> Cell:
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if not _is_skipped(line)), 0)
    made = -1
    if lines[first].startswith("%%"):
        words = lines[first][2:].split()
        if not words or words[0] not in _PYTHON_CELLS:
            return Cell(is_python=False)
        lines[first], made = _aside(lines[first]), first
    lines = [each if n == made else _as_written(each) for n, each in enumerate(lines)]
    for _ in range(_MOST):
        number, error = _error(lines)
        if not error:
            return Cell("\n".join(lines))
        if not 0 < number <= len(lines) or not _is_put_aside(lines, number - 1):
            return Cell(line=max(number, 1), error=error)
    return Cell(line=1, error=f"more than {_MOST} lines are not Python")


def _is_skipped(line: str) -> bool:
    """Before the magic of a cell: `#@title` of Colab stands there."""
    return not line.strip() or line.startswith("#")


def original(text: str) -> str:
    """The cell that was tamed, with whatever was changed in its other lines."""
    return "\n".join(
        _MADE_VALUE.sub(r"\1", _MADE.sub(r"\1", line, count=1), count=1)
        if _ASIDE in line or _VALUE in line
        else line
        for line in text.split("\n")
    )


def _error(lines: list[str]) -> tuple[int, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except ValueError as error:
        return 1, str(error)
    except (RecursionError, MemoryError):
        return 1, "nested too deeply to be judged"
    return 0, ""


def _is_put_aside(lines: list[str], at: int) -> bool:
    """The line, or the command that it goes on with: `!train \\` and its options below."""
    if _put_aside(lines, at):
        return True
    first = at
    while first > 0 and lines[first - 1].rstrip().endswith("\\"):
        first -= 1
    return first != at and _put_aside(lines, first)


def _put_aside(lines: list[str], at: int) -> bool:
    line = lines[at]
    if _MADE.match(line) or _MADE_VALUE.match(line):
        return False
    assigned = _ASSIGNED.fullmatch(line)
    if assigned is not None:
        lines[at] = f"{assigned[1]}{_VALUE}{assigned[2]}"
    elif _MAGIC.match(line):
        lines[at] = _aside(line)
    else:
        return False
    indent = _indent(line)
    while line.rstrip().endswith("\\") and at + 1 < len(lines):
        at += 1
        line = lines[at]
        if not line.startswith(indent):
            return False  # there is no statement that could stand for it
        lines[at] = _aside(line, indent)
    return True


def _as_written(line: str) -> str:
    """What a user wrote as we do is put aside as well, and comes back as it was."""
    return _aside(line) if _MADE.match(line) or _MADE_VALUE.match(line) else line


def _aside(line: str, indent: str | None = None) -> str:
    own = _indent(line) if indent is None else indent
    return f"{own}{_ASIDE}{line[len(own) :]}"


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
