"""The arguments of every command."""

from __future__ import annotations

import argparse
from typing import Any

from tensortrail import __version__
from tensortrail.cli.suggestions import Parser
from tensortrail.config import FORMATS

REPORT_FORMATS = (
    "text", "html", "perfetto", "jsonl", "parquet", "findings", "json", "sarif", "github"
)  # fmt: skip


CHECKPOINT = "checkpoint"
DOCTOR = (CHECKPOINT, "plan-save", "subclass", "settings", "placement")


class _Command(Parser):
    """A command; with a `shorthand`, `doctor PATH` stands for `doctor checkpoint PATH`."""

    shorthand: tuple[str, ...] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.shorthand and args and args[0] not in (*self.shorthand, "-h", "--help"):
            args = [self.shorthand[0], *args]
        found, rest = super().parse_known_args(args, namespace)
        if isinstance(getattr(found, "paths", None), list):
            # `check a.py --diff b.py`: argparse takes no paths behind an option
            found.paths += [each for each in rest if not each.startswith("-")]
            rest = [each for each in rest if each.startswith("-")]
        return found, rest


OF_RUN = "a run's directory or file; without it, the newest run here"


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="tensortrail",
        description="Which tensor is where, who put it there, and what to change.",
    )
    top.add_argument("--version", action="version", version=f"tensortrail {__version__}")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Command
    )
    demo = commands.add_parser("demo", help="see a failing program explained and mended")
    demo.add_argument(
        "folder",
        nargs="?",
        default="tensortrail-demo",
        metavar="FOLDER",
        help="where its program and its runs go",
    )
    _add_check(commands.add_parser("check", help="find risky code without running it"))
    trace = "run a program and record what its tensors do (tensortrail trace --help)"
    commands.add_parser("trace", help=trace, add_help=False)
    _add_report(commands.add_parser("report", help="show what a recorded run comes to"))
    _add_fix(commands.add_parser("fix", help="apply what a recorded run suggests"))
    settings = "show the settings that a recorded run calls for, as a patch where it can be one"
    _add_settings(commands.add_parser("settings", help=settings))
    _add_why(commands.add_parser("why", help="say why a tensor of a run is where it is"))
    _add_runs(commands.add_parser("runs", help="list, compare and remove recorded runs"))
    _add_doctor(commands.add_parser("doctor", help="find out what would go wrong, before it does"))
    explain = commands.add_parser("explain", help="show a rule's page, or list the rules")
    explain.add_argument("rule", nargs="?", help="a code (OFF101) or name; OFF lists a family")
    explain.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    return top


def _add_check(check: argparse.ArgumentParser) -> None:
    add = check.add_argument
    add("paths", nargs="*", metavar="PATH", help="files and folders; - reads standard input")
    rules = check.add_argument_group("rules").add_argument
    rules("--select", metavar="CODES", help="run only these: codes, prefixes, names, ALL, DEFAULT")
    rules("--ignore", metavar="CODES", help="do not run these")
    rules("--extend-select", metavar="CODES", help="run these too")
    fixes = check.add_argument_group("fixes").add_argument
    fixes("--fix", action="store_true", help="apply the safe fixes")
    fixes("--unsafe-fixes", action="store_true", default=None, help="with --fix: unsafe ones too")
    fixes("--diff", action="store_true", help="show what --fix would change, change nothing")
    fixes("--add-ignores", action="store_true", help="add ignore comments for all findings")
    output = check.add_argument_group("output").add_argument
    output("--output-format", choices=FORMATS, help="text is the default")
    output("--output-file", metavar="FILE", help="write the report there")
    output("--statistics", action="store_true", help="count the findings by rule")
    output("--color", choices=("auto", "always", "never"), default="auto")
    output(
        "--no-siblings", action="store_true", help="do not look for places with the same pattern"
    )
    output("--exit-zero", action="store_true", help="exit with 0 even if something is found")
    files = check.add_argument_group("files").add_argument
    files("--stdin-filename", metavar="NAME", help="what to call standard input")
    files("--exclude", metavar="PATTERNS", help="leave these out")
    files("--syntax", action="store_true", help="parse files without a risky word too")
    files("--allow-empty", action="store_true", help="do not fail when there are no files")
    files("--no-respect-gitignore", action="store_true", help="check ignored files too")
    run = check.add_argument_group("run").add_argument
    run(
        "--with-trail",
        metavar="RUN",
        help="raise or lower the confidence of findings by what a run showed",
    )
    run("--config", metavar="FILE", help="read [tool.tensortrail] of this file")
    run("--isolated", action="store_true", help="read no configuration")
    run("--no-cache", action="store_true", help="check every file again, without the cache")
    run("--cache-dir", metavar="DIR", help="the folder of the cache")
    run("--jobs", type=int, metavar="N", help="processes; 0 takes one for each processor")
    profile = "print the time and the findings of each rule after the run, which takes one process"
    run("--profile-rules", action="store_true", help=profile)
    places = "print the files with the place each tensor is inferred to have, and stop"
    run("--show-places", action="store_true", help=places)
    run("--show-settings", action="store_true", help="print the settings in force and stop")


def _add_report(report: argparse.ArgumentParser) -> None:
    add = report.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--format", choices=REPORT_FORMATS, default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write there; html and others choose a name")
    add("--paste", action="store_true", help="one block for an issue, without what is private")
    add("--select", metavar="CODES", help="findings of these rules only")
    add("--color", choices=("auto", "always", "never"), default="auto")


def _add_fix(fix: argparse.ArgumentParser) -> None:
    add = fix.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--diff", action="store_true", help="show what would change, change nothing")
    add("--unsafe-fixes", action="store_true", help="unsafe ones too")
    add("--select", metavar="CODES", help="fixes of these rules only")


def _add_settings(settings: argparse.ArgumentParser) -> None:
    add = settings.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    add("--apply", action="store_true", help="put them into the source")
    add("--format", choices=("text", "json"), default="text", help="text is the default")
    add("--select", metavar="CODES", help="settings of these rules only")


def _add_why(why: argparse.ArgumentParser) -> None:
    add = why.add_argument
    add("run", nargs="?", default=".tensortrail", metavar="RUN", help=OF_RUN)
    tensor = "model.embed.weight, the end of its name, or a variable; without it, a list of them"
    add("tensor", nargs="?", metavar="TENSOR", help=tensor)
    add("--format", choices=("text", "json"), default="text", help="text is the default")


def _add_runs(runs: argparse.ArgumentParser) -> None:
    add = runs.add_argument
    add("folder", nargs="?", default=".tensortrail", metavar="FOLDER", help="where the runs are")
    add("--compare", nargs=2, metavar=("A", "B"), help="what is different in run B")
    add(
        "--remove",
        nargs="+",
        metavar="RUN",
        help="remove these runs, and nothing else that lies in their folders",
    )
    add("--format", choices=("text", "json"), default="text", help="text is the default")


def _add_doctor(doctor: _Command) -> None:
    doctor.shorthand = DOCTOR
    commands = doctor.add_subparsers(dest="doctor", required=True, metavar="PATH | WHAT")
    told = "whether a stored checkpoint is whole and would load; `doctor PATH` is short for it"
    _add_checkpoint(commands.add_parser(CHECKPOINT, help=told, description=told))
    told = "what a save_pretrained of transformers will do: files, groups it cuts, memory, disk"
    _add_plan_save(commands.add_parser("plan-save", help=told, description=told))
    told = "what checkpoints, sharding and offloading need of a tensor subclass, and what it does"
    _add_subclass(commands.add_parser("subclass", help=told, description=told))
    told = "settings of accelerate, DeepSpeed and transformers that disagree or do nothing"
    _add_settings_files(commands.add_parser("settings", help=told, description=told))
    told = "where each module of a model would go, what is offloaded and why"
    _add_placement(commands.add_parser("placement", help=told, description=told))


def _add_checkpoint(checkpoint: argparse.ArgumentParser) -> None:
    add = checkpoint.add_argument
    add("paths", nargs="+", metavar="PATH", help="a folder, a weight file or an index")
    add("--folders", action="store_true", help="check the folders that the files named lie in")
    model = "compare names and shapes with the model of this config.json; own: the one beside them"
    add("--model", default="", metavar="CONFIG", help=model)
    values = "read every tensor: NaN, infinite, constant and repeated values; this takes its time"
    add("--values", action="store_true", help=values)
    manifest = "write the SHA-256 of every file into SHA256SUMS, or compare the files with it"
    add("--manifest", choices=("write", "verify"), help=manifest)
    add("--html", metavar="FILE", help="draw the files by size, with what is damaged, there")
    add("--repair", metavar="OUT", help="mend what can be mended, into this new folder")
    add("--link", action="store_true", help="with --repair: link unchanged files, do not copy them")
    _add_findings(checkpoint)


def _add_settings_files(settings: argparse.ArgumentParser) -> None:
    told = "files, or folders whose YAML and JSON files are read"
    settings.add_argument("paths", nargs="+", metavar="FILE", help=told)
    _add_findings(settings)


def _add_placement(placement: argparse.ArgumentParser) -> None:
    add = placement.add_argument
    add("model", metavar="MODEL", help="a config.json or its folder; quantized: with its weights")
    gpu = "what each GPU may hold: 24GiB, 24GiB x2, 24GiB 40GiB"
    add("--gpu", action="append", nargs="+", default=[], metavar="SIZE", help=gpu)
    add("--cpu", default="", metavar="SIZE", help="what the memory of the CPU may hold")
    add("--disk", action="store_true", help="the rest may go to a folder")
    strategies = ("auto", "balanced", "balanced_low_0", "sequential")
    add("--device-map", choices=strategies, default="auto", help="as from_pretrained takes it")
    add("--dtype", default="", metavar="TYPE", help="of the weights; that of the configuration")
    add("--bandwidth", default="25GB", metavar="SIZE", help="from the CPU to a GPU in a second")
    add("--disk-bandwidth", default="3GB", metavar="SIZE", help="from the disk in a second")
    add("--run", default="", metavar="RUN", help="beside it, where a recorded run had them")
    add("--format", choices=("text", "json"), default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write there")


def _add_findings(command: argparse.ArgumentParser) -> None:
    """What every check of the doctor takes."""
    add = command.add_argument
    add("--select", metavar="CODES", help="run only these checks: codes, prefixes, names, ALL")
    add("--ignore", metavar="CODES", help="do not run these")
    add("--verbose", action="store_true", help="name the checks that ran, and why others did not")
    _add_findings_output(command)


def _add_plan_save(plan: argparse.ArgumentParser) -> None:
    add = plan.add_argument
    add("path", metavar="PATH", help="the folder of a model, or its config.json")
    size = "what the save will be given: a number of bytes, or 300KB, 5MB, 2GB (50GB)"
    add("--max-shard-size", default="50GB", metavar="SIZE", help=size)
    memory = "no weight is offloaded: all are converted before they are cut"
    add("--in-memory", action="store_true", help=memory)
    _add_findings_output(plan)


def _add_findings_output(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--format", choices=FORMATS, default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write the report there")
    add("--color", choices=("auto", "always", "never"), default="auto")
    add("--exit-zero", action="store_true", help="exit with 0 even if something is found")


def _add_subclass(subclass: argparse.ArgumentParser) -> None:
    add = subclass.add_argument
    add("subclass", metavar="CLASS", help="module:Class, or module:factory() that makes a tensor")
    add("--make", default="", metavar="FUNCTION", help="module:function that makes a new tensor")
    add("--use", action="append", default=[], metavar="USE", help="only this: staging, FSDP2, ...")
    add(
        "--except-for",
        action="append",
        default=[],
        metavar="OP",
        help="allow this operation to fail",
    )
    add("--rehearse", default="", metavar="DEVICES", help="simulate these: cuda, cuda:2")
    add("--format", choices=("text", "json"), default="text")
    add("-o", "--output", metavar="FILE", help="write there")
    add("--color", choices=("auto", "always", "never"), default="auto")
