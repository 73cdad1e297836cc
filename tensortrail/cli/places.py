"""`tensortrail check --show-places`: where each tensor is inferred to lie, beside its line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tensortrail.cli.console import fail, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED
from tensortrail.files import read


def show_places(paths: Sequence[str]) -> int:
    from tensortrail.analyzer.judging.module import open_project
    from tensortrail.analyzer.judging.shown_places import shown
    from tensortrail.analyzer.reading.python_files import python_of
    from tensortrail.analyzer.reading.source import Unreadable
    from tensortrail.inert import inert, inert_path

    project, code = open_project(), CLEAN
    for path in paths:
        try:
            text = shown(path, python_of(path, read(path)), project)
        except OSError as error:
            fail(f"{path}: {error.strerror or error}", "--show-places reads files, not folders")
            code = FAILED
        except Unreadable as error:
            fail(f"{path}:{error.line}: {error}")
            code = FAILED
        else:
            head = [f"{inert_path(path)}:"] if len(paths) > 1 else []
            write_text("\n".join([*head, *map(inert, text.splitlines())]), sys.stdout)
    return code
