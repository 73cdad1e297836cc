"""What `tensortrail check` takes."""

from __future__ import annotations

import argparse

from tensortrail.config import FORMATS, NOTES, SEVERITIES


def add_check(check: argparse.ArgumentParser) -> None:
    add = check.add_argument
    add("paths", nargs="*", metavar="PATH", help="files and folders; - reads standard input")
    rules = check.add_argument_group("rules").add_argument
    rules("--select", metavar="CODES", help="run only these: codes, prefixes, names, ALL, DEFAULT")
    rules("--ignore", metavar="CODES", help="do not run these")
    rules("--extend-select", metavar="CODES", help="run these too")
    fixes = check.add_argument_group("fixes").add_argument
    fixes("--fix", action="store_true", help="apply the safe fixes")
    fixes(
        "--unsafe-fixes",
        action="store_true",
        default=None,
        help="with --fix: apply unsafe fixes too",
    )
    fixes("--diff", action="store_true", help="show what --fix would change, change nothing")
    fixes("--add-ignores", action="store_true", help="add ignore comments for all findings")
    old = check.add_argument_group("old findings").add_argument
    old("--baseline", metavar="FILE", help="report only findings that are not in this file")
    old("--write-baseline", action="store_true", help="write the current findings to the baseline")
    since = "check only files that changed since BASE in git (HEAD)"
    old("--changed-only", nargs="?", const="HEAD", metavar="BASE", help=since)
    output = check.add_argument_group("output").add_argument
    output("--output-format", "--format", choices=FORMATS, help="text is the default")
    output("--output-file", metavar="FILE", help="write the report to this file")
    output("--statistics", action="store_true", help="count the findings by rule")
    output("--color", choices=("auto", "always", "never"), default="auto")
    output(
        "--no-siblings", action="store_true", help="do not list other code with the same pattern"
    )
    output("--exit-zero", action="store_true", help="exit with 0 even if something is found")
    severe = "exit with 1 only for findings of this severity or worse; warning is the default"
    output("--fail-on", choices=SEVERITIES, help=severe)
    detail = "in the text format notes are short, full shows them as warnings; hidden: in no format"
    output("--notes", choices=NOTES, help=detail)
    files = check.add_argument_group("files").add_argument
    files(
        "--files-from", metavar="FILE", help="also check the paths listed in this file, one a line"
    )
    files("--stdin-filename", metavar="NAME", help="the file name to show for standard input")
    files("--exclude", metavar="PATTERNS", help="files and folders to leave out")
    files("--syntax", action="store_true", help="also parse files that no rule needs")
    files("--allow-empty", action="store_true", help="do not fail when there are no files")
    files("--no-respect-gitignore", action="store_true", help="check ignored files too")
    run = check.add_argument_group("run").add_argument
    run(
        "--with-trail",
        metavar="RUN",
        help="raise or lower the confidence of findings by what a run showed",
    )
    run("--config", metavar="FILE", help="read [tool.tensortrail] from this file")
    run("--isolated", action="store_true", help="read no configuration")
    run("--no-cache", action="store_true", help="check every file again, without the cache")
    run("--cache-dir", metavar="DIR", help="the folder of the cache")
    run("--jobs", type=int, metavar="N", help="number of processes; 0: one for each processor")
    profile = "print the time and the findings of each rule; runs in one process"
    run("--profile-rules", action="store_true", help=profile)
    places = "print the files with the inferred place of each tensor, and exit"
    run("--show-places", action="store_true", help=places)
    run("--show-settings", action="store_true", help="print the configuration in force and exit")
