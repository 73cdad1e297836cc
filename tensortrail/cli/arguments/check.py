"""What `tensortrail check` takes."""

from __future__ import annotations

import argparse

from tensortrail.config import FORMATS, NOTES, SEVERITIES


def add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument(
        "paths", nargs="*", metavar="PATH", help="files and folders; - reads standard input"
    )
    _which_rules(check)
    _fixes(check)
    _old_findings(check)
    _output(check)
    _which_files(check)
    _how_to_run(check)


def _which_rules(check: argparse.ArgumentParser) -> None:
    add = check.add_argument_group("rules").add_argument
    add("--select", metavar="CODES", help="run only these: codes, prefixes, names, ALL, DEFAULT")
    add("--ignore", metavar="CODES", help="do not run these")
    add("--extend-select", metavar="CODES", help="run these too")


def _fixes(check: argparse.ArgumentParser) -> None:
    add = check.add_argument_group("fixes").add_argument
    add("--fix", action="store_true", help="apply the safe fixes")
    add(
        "--unsafe-fixes",
        action="store_true",
        default=None,
        help="with --fix: apply unsafe fixes too",
    )
    add("--diff", action="store_true", help="show what --fix would change, change nothing")
    add("--add-ignores", action="store_true", help="add ignore comments for all findings")


def _old_findings(check: argparse.ArgumentParser) -> None:
    add = check.add_argument_group("old findings").add_argument
    add("--baseline", metavar="FILE", help="report only findings that are not in this file")
    add("--write-baseline", action="store_true", help="write the current findings to the baseline")
    since = "check only files that changed since BASE in git (HEAD)"
    add("--changed-only", nargs="?", const="HEAD", metavar="BASE", help=since)
    brought = "report only what a change since BASE in git (HEAD) brought, with all rules and notes"
    add("--new-since", nargs="?", const="HEAD", metavar="BASE", help=brought)


def _output(check: argparse.ArgumentParser) -> None:
    add = check.add_argument_group("output").add_argument
    add("--output-format", "--format", choices=FORMATS, help="text is the default")
    add("--output-file", metavar="FILE", help="write the report to this file")
    add("--statistics", action="store_true", help="count the findings by rule")
    add("--color", choices=("auto", "always", "never"), default="auto")
    add("--no-siblings", action="store_true", help="do not list other code with the same pattern")
    add("--exit-zero", action="store_true", help="exit with 0 even if something is found")
    severe = "exit with 1 only for findings of this severity or worse; warning is the default"
    add("--fail-on", choices=SEVERITIES, help=severe)
    detail = (
        "short: one entry a message, in the text format; full: like warnings; all: also those with "
        "less evidence; hidden: in no format"
    )
    add("--notes", choices=NOTES, help=detail)


def _which_files(check: argparse.ArgumentParser) -> None:
    add = check.add_argument_group("files").add_argument
    add("--files-from", metavar="FILE", help="also check the paths listed in this file, one a line")
    add("--stdin-filename", metavar="NAME", help="the file name to show for standard input")
    add("--exclude", metavar="PATTERNS", help="files and folders to leave out")
    add("--syntax", action="store_true", help="also parse files that no rule needs")
    add("--allow-empty", action="store_true", help="do not fail when there are no files")
    add("--no-respect-gitignore", action="store_true", help="check ignored files too")


def _how_to_run(check: argparse.ArgumentParser) -> None:
    add = check.add_argument_group("run").add_argument
    add(
        "--with-trail",
        metavar="RUN",
        help="raise or lower the confidence of findings by what a run showed",
    )
    add("--config", metavar="FILE", help="read [tool.tensortrail] from this file")
    add("--isolated", action="store_true", help="read no configuration")
    add("--no-cache", action="store_true", help="check every file again, without the cache")
    add("--cache-dir", metavar="DIR", help="the folder of the cache")
    add("--jobs", type=int, metavar="N", help="number of processes; 0: one for each processor")
    profile = "print the time and the findings of each rule; runs in one process"
    add("--profile-rules", action="store_true", help=profile)
    places = "print the files with the inferred place of each tensor, and exit"
    add("--show-places", action="store_true", help=places)
    add("--show-settings", action="store_true", help="print the configuration in force and exit")
