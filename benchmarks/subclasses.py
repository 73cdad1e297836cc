"""Writes docs/subclasses.md: what every wrapper class of torchao and of two releases of
TransformerEngine does in each use. `python -m benchmarks.subclasses` in the repository's root."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tensortrail.doctor.subclass.words import CannotMake, Examination, Row, Verdict

PAGE = Path(__file__).parent.parent / "docs" / "subclasses.md"
SHORT = {
    Verdict.WRONG_TYPE: "type",
    Verdict.WRONG_VALUES: "values",
    Verdict.WRONG_DEVICE: "device",
    Verdict.WRONG_STORAGE: "storage",
    Verdict.RAISES: "raises",
}
COLUMNS = {
    "DCP staging": "staging",
    "DCP save and load": "save, load",
    "FSDP2": "FSDP2",
    "offload": "offload",
    "torch.save and torch.load": "torch.save",
    "torch.compile": "compile",
}
HEAD = """\
# Tensor subclasses: which operations fail

The results of `tensortrail doctor subclass` for the wrapper classes of torchao and
TransformerEngine. [The guide](guides/wrapper-tensors.md) explains the operations. Written by
`python -m benchmarks.subclasses` ({versions}, on a CPU).

torchao is the released package; classes whose content only GPU kernels can compute contain
meaningless numbers, which affects only values. The Python of TransformerEngine is that of the
release, but **its kernels are CPU stand-ins and the current GPU is only a name**
(`tests/real/transformer_engine`): types, devices and storages are real, numbers are not those of a
GPU. Operations that need a GPU are not counted.

"3 of 13" means that 3 of 13 operations that could be tried fail. "Silent loss" means that
`async_save` writes uninitialised memory without an exception.
"""
DETAILS = """
## What fails

In brackets: another **type** or class, other or uninitialised **values**, another **device** than
requested, a **storage** that is shared or is not the tensor's, or it **raises**. Two operations
fail for every class and are left out below: `share_memory_()` of a wrapper without its own storage
ends the process in torch {torch}, and `parameter.data = ...` does not change the inner tensors.
"""
EVERYWHERE = ("share_memory", "parameter.data = ...")


def torchao() -> Iterator[Examination]:
    from tensortrail.doctor.subclass.examine import examine
    from tensortrail.doctor.subclass.families.torchao import MAKERS

    for name, make in MAKERS.items():
        try:
            yield examine(make)
        except (CannotMake, Exception) as error:
            print(f"{name} cannot be made here: {error}", file=sys.stderr)


def transformer_engine(release: str) -> Iterator[Examination]:
    from tests.real.transformer_engine.recorded import environment

    for maker in ("float8", "mxfp8", "blockwise", "nvfp4"):
        command = [sys.executable, "-W", "ignore", "-m", "tensortrail", "doctor", "subclass"]
        done = subprocess.run(
            [*command, f"tests.real.transformer_engine.makers:{maker}()", "--format", "json"],
            env=environment(release),
            capture_output=True,
            text=True,
            check=False,
        )
        told = json.loads(done.stdout)
        rows = tuple(
            Row(each["use"], each["op"], Verdict(each["verdict"]), each["told"])
            for each in told["rows"]
        )
        yield Examination(told["class"], told["instance"], told["versions"], rows)


def overview(found: Iterable[Examination]) -> Iterator[str]:
    yield f"| class | {' | '.join(COLUMNS.values())} | async_save |"
    yield f"|---|{'---|' * (len(COLUMNS) + 1)}"
    for each in found:
        cells = [_count(each, use) for use in COLUMNS]
        yield f"| {link(each)} | {' | '.join(cells)} | {_saved(each)} |"


def details(each: Examination) -> Iterator[str]:
    """The section of one class."""
    yield f"### {title(each)}"
    yield ""
    yield f"`{each.kind}`, {each.about}"
    yield ""
    for use in COLUMNS:
        rows = [row for row in _told(each) if row.use == use]
        if rows:
            listed = ", ".join(f"`{row.op}` ({SHORT[row.verdict]})" for row in rows)
            yield f"- {use}: {listed}"
    yield ""


def title(each: Examination) -> str:
    """`Float8Tensor (transformer_engine 2.15.0)`"""
    short = each.kind.rpartition(".")[2]
    return f"{short} ({each.versions.partition(',')[0]})"


def link(each: Examination) -> str:
    anchor = title(each).lower().replace(" ", "-")
    kept = "".join(letter for letter in anchor if letter.isalnum() or letter in "-_")
    return f"[{each.kind.rpartition('.')[2]}](#{kept})"


def _count(each: Examination, use: str) -> str:
    rows = [row for row in each.rows if row.use == use]
    tried = sum(row.verdict is not Verdict.NOT_APPLICABLE for row in rows)
    bad = sum(row.verdict.fails for row in rows)
    return f"{bad} of {tried}" if bad else ("all" if tried else "–")


def _saved(each: Examination) -> str:
    (row,) = (row for row in each.rows if row.op == "dcp.async_save, dcp.load")
    if row.verdict is Verdict.WRONG_VALUES:
        return "**silent loss**" if "uninitialised" in row.told else "other values"
    return {Verdict.HANDLED: "right", Verdict.NOT_APPLICABLE: "–"}.get(row.verdict, "raises")


def _told(each: Examination) -> list[Row]:
    return [row for row in each.failing if not any(part in row.op for part in EVERYWHERE)]


def main() -> None:
    import torch

    logging.disable(logging.CRITICAL)
    groups = {
        "torchao": sorted(torchao(), key=title),
        "TransformerEngine 2.15.0 (stand-in kernels)": list(transformer_engine("2.15.0")),
        "TransformerEngine 2.16.0 (stand-in kernels)": list(transformer_engine("2.16.0")),
    }
    version = torch.__version__.partition("+")[0]
    lines = [
        HEAD.format(versions=f"{groups['torchao'][0].versions.partition(',')[0]}, torch {version}")
    ]
    for name, found in groups.items():
        lines += [f"## {name}", "", *overview(found), ""]
    lines += [DETAILS.format(torch=version)]
    for each in (each for found in groups.values() for each in found):
        lines += details(each)
    PAGE.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
