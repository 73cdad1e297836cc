"""What `tensortrail doctor` takes, by what it looks at."""

from __future__ import annotations

import argparse

from tensortrail.cli.arguments.command import Command, add_command
from tensortrail.config import FORMATS, SEVERITIES

CHECKPOINT = "checkpoint"
DOCTOR = (CHECKPOINT, "plan-save", "subclass", "settings", "placement")


def add_doctor(doctor: Command) -> None:
    doctor.shorthand = DOCTOR
    commands = doctor.add_subparsers(dest="doctor", required=True, metavar="PATH | WHAT")
    told = "check that a stored checkpoint is complete and would load (short: `doctor PATH`)"
    _add_checkpoint(add_command(commands, CHECKPOINT, told))
    told = "show what save_pretrained of transformers will write: files, split groups, memory, disk"
    _add_plan_save(add_command(commands, "plan-save", told))
    told = "check that a tensor subclass supports checkpoints, sharding and offloading"
    _add_subclass(add_command(commands, "subclass", told))
    told = "find settings of accelerate, DeepSpeed and transformers that conflict or have no effect"
    _add_settings_files(add_command(commands, "settings", told))
    told = "show where each module of a model would go, what is offloaded, and why"
    _add_placement(add_command(commands, "placement", told))


def _add_checkpoint(checkpoint: argparse.ArgumentParser) -> None:
    add = checkpoint.add_argument
    add("paths", nargs="+", metavar="PATH", help="a folder, a weight file or an index")
    add("--folders", action="store_true", help="check the whole folders of the named files")
    model = "compare names and shapes with the model of this config.json; own: the checkpoint's"
    add("--model", default="", metavar="CONFIG", help=model)
    values = "read every tensor: NaN, infinite, constant and repeated values (slow)"
    add("--values", action="store_true", help=values)
    manifest = "write the SHA-256 of every file to SHA256SUMS, or compare the files with it"
    add("--manifest", choices=("write", "verify"), help=manifest)
    add("--html", metavar="FILE", help="write a picture of the files by size, with the damage")
    add("--repair", metavar="OUT", help="repair what can be repaired, into this new folder")
    add("--link", action="store_true", help="with --repair: link unchanged files, do not copy them")
    _add_findings(checkpoint)


def _add_settings_files(settings: argparse.ArgumentParser) -> None:
    told = "files, or folders with YAML and JSON files"
    settings.add_argument("paths", nargs="+", metavar="FILE", help=told)
    _add_findings(settings)


def _add_placement(placement: argparse.ArgumentParser) -> None:
    add = placement.add_argument
    add("model", metavar="MODEL", help="a config.json or its folder (quantized: with the weights)")
    gpu = "memory of each GPU: 24GiB, 24GiB x2, 24GiB 40GiB"
    add("--gpu", action="append", nargs="+", default=[], metavar="SIZE", help=gpu)
    add("--cpu", default="", metavar="SIZE", help="memory of the CPU")
    add("--disk", action="store_true", help="offload the rest to disk")
    strategies = ("auto", "balanced", "balanced_low_0", "sequential")
    add("--device-map", choices=strategies, default="auto", help="as in from_pretrained")
    add("--dtype", default="", metavar="TYPE", help="of the weights; default: as in config.json")
    add("--bandwidth", default="25GB", metavar="SIZE", help="bytes a second from CPU to GPU")
    add("--disk-bandwidth", default="3GB", metavar="SIZE", help="bytes a second from disk")
    add("--run", default="", metavar="RUN", help="compare with where a recorded run had them")
    add("--format", choices=("text", "json"), default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write to this file")


def _add_plan_save(plan: argparse.ArgumentParser) -> None:
    add = plan.add_argument
    add("path", metavar="PATH", help="the folder of a model, or its config.json")
    size = "as in save_pretrained: a number of bytes, or 300KB, 5MB, 2GB (50GB)"
    add("--max-shard-size", default="50GB", metavar="SIZE", help=size)
    memory = "no weight is offloaded: all are converted before they are split into files"
    add("--in-memory", action="store_true", help=memory)
    _add_findings_output(plan)


def _add_subclass(subclass: argparse.ArgumentParser) -> None:
    add = subclass.add_argument
    add("subclass", metavar="CLASS", help="module:Class, or module:factory() that makes a tensor")
    add("--make", default="", metavar="FUNCTION", help="module:function that makes a new tensor")
    add(
        "--use",
        action="append",
        default=[],
        metavar="USE",
        help="try only this: staging, FSDP2, ...",
    )
    add(
        "--except-for",
        action="append",
        default=[],
        metavar="OP",
        help="allow this operation to fail",
    )
    add("--rehearse", default="", metavar="DEVICES", help="simulate these GPUs: cuda, cuda:2")
    add("--format", choices=("text", "json"), default="text")
    add("-o", "--output", metavar="FILE", help="write to this file")
    add("--color", choices=("auto", "always", "never"), default="auto")


def _add_findings(command: argparse.ArgumentParser) -> None:
    """What every check of the doctor takes."""
    add = command.add_argument
    add("--select", metavar="CODES", help="run only these checks: codes, prefixes, names, ALL")
    add("--ignore", metavar="CODES", help="do not run these")
    add("--verbose", action="store_true", help="list the checks that ran, and why others did not")
    _add_findings_output(command)


def _add_findings_output(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--format", choices=FORMATS, default="text", help="text is the default")
    add("-o", "--output", metavar="FILE", help="write the report to this file")
    add("--color", choices=("auto", "always", "never"), default="auto")
    add("--exit-zero", action="store_true", help="exit with 0 even if something is found")
    severe = "exit with 1 only for findings of this severity or worse; warning is the default"
    add("--fail-on", choices=SEVERITIES, default="warning", help=severe)
