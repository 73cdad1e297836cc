"""Where the report of a run goes: to the terminal, or into a file of its format."""

from __future__ import annotations

import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from tensortrail.cli.console import wants_color, write_text
from tensortrail.config import ConfigError
from tensortrail.files import stay_inside

if TYPE_CHECKING:
    from tensortrail.findings import Report

BINARY = {"parquet": "run.parquet", "html": "report.html", "perfetto": "perfetto.json"}
"""Formats that go into a file, with the name it gets in the run's directory."""


def show(report: Report, options: Namespace, whole: Callable[[bool, int], str]) -> None:
    """The findings in the format asked for; `whole` tells a person of the run before them."""
    from tensortrail.reporters import render

    color = options.output is None and wants_color(options.color, sys.stdout)
    width = shutil.get_terminal_size((100, 40)).columns
    text = whole(color, width) + "\n" if options.format == "text" else ""
    name = "text" if options.format == "findings" else options.format
    text += render(name, report, color=color, width=width)
    emit(text, options.output)


def file_for(directory: str, options: Namespace) -> str:
    """Where a format goes that is not text for a terminal."""
    path: str = options.output or os.path.join(directory, BINARY[options.format])
    try:
        stay_inside(path)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from error
    return path


def emit(text: str, output: str | None) -> None:
    if output is None:
        write_text(text, sys.stdout)
        return
    from tensortrail.files import write

    try:
        write(output, (text.rstrip("\n") + "\n").encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror or error}") from error
