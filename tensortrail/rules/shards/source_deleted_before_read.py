from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Setting, Severity
from tensortrail.rules import Bad, Did, Good, Module, Rule, Timeline
from tensortrail.rules.shards._call import collected, of_call
from tensortrail.rules.shards._saving import is_onload, reads_back
from tensortrail.rules.shared.origins import names_behind
from tensortrail.rules.shared.sentences import one_line

_DELETES = frozenset({"os.remove", "os.unlink", "shutil.rmtree"})
_TEMPORARY = re.compile(r"(?i)te?mp|cache|\block")


class SourceDeletedBeforeRead(Rule):
    """A save deletes old files of the folder before it has read the offloaded weights.

    ## What it does
    In code, reports the removal of files in a save that loads offloaded weights only later.

    In a recorded run, reports the file that `save_pretrained` of transformers removed or overwrote
    before it read the offloaded weights in it. `tensortrail trace --guard` stops the program before
    that.

    ## Why is this bad?
    The save fails half-way, and the only copy of the weights is gone: saving into the folder that
    holds the offloaded weights removes the files they still have to be read from.

    ## Fix safety
    No fix is offered: which files to keep until when is up to the writer.

    ## References
    - `save_pretrained` of huggingface/transformers, into the folder of a disk-offloaded model
    """

    code = "SHD407"
    name = "source-deleted-before-read"
    since = "0.2.0"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.MEDIUM
    triggers = tuple(
        (deletes, reads)
        for deletes in ("remove", "unlink", "rmtree")
        for reads in ("offloaded", "onload_")
    )

    bad = (
        Bad(
            """\
import os

def save(model, folder, names, keep):
    for file in os.listdir(folder):
        if file not in keep:
            os.remove(os.path.join(folder, file))
    for name in names:
        write(folder, load_offloaded_parameter(model, name))
""",
            lines=(6,),
            instead="""\
import os

def save(model, folder, names, old):
    for name in names:
        write(folder, load_offloaded_parameter(model, name))
    for file in old:
        os.remove(os.path.join(folder, file))
""",
        ),
    )
    good = (
        Good(
            """\
import os

def save(model, folder, names, tmp_file):
    os.remove(tmp_file)
    for name in names:
        write(folder, load_offloaded_parameter(model, name))
"""
        ),
        Good(
            """\
import os

def save(model, folder, names, source):
    if not os.path.samefile(folder, source):
        os.remove(os.path.join(folder, "old"))
    for name in names:
        write(folder, load_offloaded_parameter(model, name))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.nodes(ast.Call):
            if not _deletes(module, call) or module.function_of(call) is None:
                continue
            if _TEMPORARY.search(module.text(call)):
                continue
            if any(guard.mentions("samefile", "offload") for guard in module.guards_of(call)):
                continue
            if any(is_onload(module, each) for each in module.earlier(call, ast.Call)):
                continue
            read = next(
                (each for each in module.later(call, ast.Call) if reads_back(module, each)), None
            )
            if read is None or not _same_folder(module, call):
                continue
            yield self.finding(
                module,
                call,
                f"`{one_line(module, call)}` removes files before the offloaded weights are read, "
                "and the weights may be in these files",
                trail=[(read, "offloaded weights are read from disk only here")],
            )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            if fate := event.facts.get("fate"):
                path, key = event.facts.get("path"), event.facts.get("key")
                does = f"will have {fate}" if event.facts.get("ahead") else f"has {fate}"
                yield self.finding_in_run(
                    timeline,
                    event,
                    f"This save {does} {path} before it reads `{key}` from it: the model is saved "
                    "into the folder that it is offloaded to",
                    severity=Severity.ERROR,
                    confidence=Confidence.HIGH,
                    settings=[
                        *of_call(timeline, event, _elsewhere(str(event.facts.get("folder", "")))),
                        *collected(timeline, event),
                    ],
                    evidence={"file": str(path)},
                )


def _elsewhere(folder: str) -> Setting:
    return Setting(
        library="transformers",
        name="save_directory",
        value=repr(f"{folder.rstrip('/')}-resaved"),
        why=f"the offloaded weights are still read from {folder} while the new files are written",
        where="save_pretrained",
    )


def _same_folder(module: Module, call: ast.Call) -> bool:
    """What is removed lies where something is written later: the two have a name in common."""
    removed = set().union(*(names_behind(module, each) for each in (call.func, *call.args)))
    later = {
        each.id
        for other in module.later(call, ast.Call)
        for given in (*other.args, *(each.value for each in other.keywords))
        for each in ast.walk(given)
        if isinstance(each, ast.Name)
    }
    return bool(removed & later)


def _deletes(module: Module, call: ast.Call) -> bool:
    if module.qualified(call.func) in _DELETES:
        return True
    return isinstance(call.func, ast.Attribute) and call.func.attr == "unlink" and not call.args
