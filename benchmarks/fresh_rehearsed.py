"""Fresh mistakes in models that can be run: only those that fail are counted.

python benchmarks/fresh_rehearsed.py [--only WORD] [--each 8] [--seconds 1200] [--list]

Each small model of `tiny_models.py` is built, moved to a simulated GPU and called once. One thing
about devices is then taken out of a line that the call has run, as in `fresh_mistakes.py`, and the
model is built and called again. What still runs is harmless there; of what fails for the sake of
a device, the share that the lint finds is printed, by all rules and by default.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from fresh_mistakes import CODES, KINDS, Lint, Mistake, mistakes
from tiny_models import Subject, subjects
from torch.utils._pytree import tree_map_only

from tensortrail.rules import all_rules
from tensortrail.tracer.rehearsal.devices.spec import parse_spec
from tensortrail.tracer.rehearsal.rehearsal import Rehearsal

PARTS = ("transformers/models/", "diffusers/models/", "/timm/models/", "/timm/layers/")
"""Mistakes are made in files whose path holds one of these."""
SECONDS = 20
"""For one run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="models whose name contains this word")
    parser.add_argument("--each", type=int, default=8, help="mistakes in one model")
    parser.add_argument("--seconds", type=float, default=1200, help="for all")
    parser.add_argument("--list", action="store_true", help="print each one that fails")
    options = parser.parse_args()
    torch.set_num_threads(1)
    lint = Lint([rule() for code, rule in all_rules().items() if code.startswith(CODES)])
    made, failed, found, by_default, idle = (Counter[str]() for _ in range(5))
    done: set[tuple[str, int]] = set()
    chance, models, end = random.Random(0), 0, time.monotonic() + options.seconds
    for subject in (each for each in subjects() if options.only in each.name):
        if time.monotonic() > end:
            break
        ran = in_child(partial(lines_run, subject))
        models += bool(ran)
        for mistake in chosen(ran or set(), done, chance, options.each):
            done.add((str(mistake.path), mistake.line))
            said = in_child(partial(outcome, subject, mistake)) or "ends the process"
            new = lint.new(mistake)
            shown = any(default for _, default in new)
            made[mistake.kind] += 1
            idle[mistake.kind] += said == "runs" and shown
            if "device" not in said:
                continue
            failed[mistake.kind] += 1
            found[mistake.kind] += bool(new)
            by_default[mistake.kind] += shown
            if options.list:
                codes = " ".join(sorted(code for code, _ in new)) or "missed"
                print(f"{mistake.path}:{mistake.line} {codes} {shown} | {said[:70]}", flush=True)
    print(f"{models} models")
    for kind in KINDS:
        print(
            f"{kind:24} {failed[kind]:4} of {made[kind]:4} fail, found {found[kind]:4}, by default "
            f"{by_default[kind]:4}; of those that run {idle[kind]} are reported by default"
        )


def chosen(
    ran: set[tuple[str, int]], done: set[tuple[str, int]], chance: random.Random, most: int
) -> list[Mistake]:
    """Mistakes in lines that ran, each line once."""
    paths = [Path(each) for each in sorted({path for path, _ in ran})]
    made = (mistake for path in paths for mistake in mistakes(path, path.read_bytes()))
    possible = [each for each in made if (str(each.path), each.line) in ran - done]
    chance.shuffle(possible)
    return possible[:most]


def lines_run(subject: Subject) -> set[tuple[str, int]]:
    """Lines of the files of interest that ran from the building of the model to its answer."""
    ran: set[tuple[str, int]] = set()

    def traced(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        if not any(part in path for part in PARTS):
            return None
        ran.add((path, frame.f_lineno))
        return traced

    run(subject, traced)
    return ran


def outcome(subject: Subject, mistake: Mistake) -> str:
    name = module_of(mistake.path)
    __import__(name)
    code = compile(mistake.data, str(mistake.path), "exec")
    exec(code, vars(sys.modules[name]))
    try:
        run(subject, None)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")
    return "runs"


def module_of(path: Path) -> str:
    """`transformers.models.bert.modeling_bert` of a file below site-packages."""
    root = next(Path(each) for each in sys.path if each and path.is_relative_to(each))
    return ".".join(path.relative_to(root).with_suffix("").parts)


def run(subject: Subject, traced: Callable[..., Any] | None) -> None:
    torch.manual_seed(0)
    with Rehearsal(parse_spec("cuda")), torch.no_grad():
        sys.settrace(traced)
        try:
            model, inputs = subject.build()
            model = model.eval().to("cuda")
            model(**tree_map_only(torch.Tensor, lambda each: each.to("cuda"), inputs))
        finally:
            sys.settrace(None)


def in_child(work: Callable[[], Any]) -> Any:
    """What the work gives in a process of its own; None if it raises or takes too long."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        signal.alarm(SECONDS)
        with os.fdopen(write, "wb") as pipe:
            try:
                pipe.write(pickle.dumps(work()))
            except Exception:
                pipe.write(pickle.dumps(None))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else None


if __name__ == "__main__":
    main()
