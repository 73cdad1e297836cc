"""`tensortrail fleet`: which ranks of a run differ, and which stopped first."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from typing import TYPE_CHECKING

from tensortrail.cli.console import fail, say
from tensortrail.cli.exit_codes import CLEAN, FAILED
from tensortrail.cli.extras import install
from tensortrail.cli.recorded_run import chosen, run_path
from tensortrail.cli.report_output import BINARY, emit
from tensortrail.config import ConfigError

if TYPE_CHECKING:
    from tensortrail.tracer.trail.rank_files import RunFiles

EXTRA = "fleet needs Ibis and an engine: pip install 'tensortrail[fleet]'"


def run(options: Namespace) -> int:
    from tensortrail.tracer.exports.parquet_ranks import is_of_ranks

    path = run_path(options.run)
    if is_of_ranks(path):
        return _answer(path, options)
    files = _files(path)
    if files is None:
        return FAILED
    if not files.several:
        fail(f"{path}: a run of one process; read it with: tensortrail report {options.run}")
        return FAILED
    return _answer(_parquet(files), options)


def _files(path: str) -> RunFiles | None:
    from tensortrail.tracer.trail.rank_files import files_by_rank
    from tensortrail.tracer.trail.reader import NotATrail

    try:
        return files_by_rank(path)
    except NotATrail as error:
        fail(str(error), "a run is recorded by: tensortrail trace script.py")
        return None


def _parquet(files: RunFiles) -> str:
    """The run's Parquet form, written if it is not there or older than a trail of the run."""
    from tensortrail.tracer.exports.parquet_ranks import is_of_ranks

    folder = os.path.join(files.folder, BINARY["parquet"])
    newest = max(os.path.getmtime(path) for each in files.ranks for path in each.paths)
    if not is_of_ranks(folder) or os.path.getmtime(folder) < newest:
        write_parquet(files, folder, "")
    return folder


def write_parquet(files: RunFiles, folder: str, select: str) -> None:
    """ConfigError where it cannot be written."""
    try:
        from tensortrail.tracer.exports import parquet_ranks

        for trouble in parquet_ranks.write(files, chosen(select), folder):
            say(f"tensortrail: {trouble}")
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror or error}") from error
    except ImportError as error:
        raise ConfigError(f"{error}: {install('export')}") from error
    say(f"tensortrail: wrote {folder}")


def _answer(folder: str, options: Namespace) -> int:
    from tensortrail.tracer.fleet import answers, tables

    try:
        told = answers.answers(tables.opened(folder, options.engine))
    except ImportError as error:
        fail(f"{EXTRA} ({error})")
        return FAILED
    if options.format == "json":
        emit(json.dumps(told, indent=2), options.output)
    else:
        emit(answers.text(told, options.run), options.output)
    return CLEAN
