"""Fresh mistakes in models that can be run: only those that fail are counted.

    python benchmarks/fresh_rehearsed.py [--only WORD] [--each 8] [--seconds 1200] [--list]
        [--kept FILE] [--beside FOLDER...]

Each small model of `tiny_models.py` is built, moved to a simulated GPU and called once. One thing
about devices is then taken out of a line that the call has run, as in `fresh_mistakes.py`, and the
model is built and called again. What still runs is harmless there; of what fails for the sake of
a device, the share that the lint finds is printed, by all rules and by default. What the runs
said is kept in the file, and a mistake that is found there is not run again: `--seconds 0` judges
the kept ones only. The folders hold packages that are installed beside the others.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import torch
from fresh_mistakes import CODES, KINDS, Lint, Mistake, mistakes
from in_child import in_child
from tiny_models import Subject, arguments, chosen_subjects, lines_run, run

from tensortrail.rules import all_rules

SECONDS = 20
"""For one run."""


@dataclass(frozen=True)
class Decided:
    """A mistake, the nth that can be made in its module, and what the run said of it."""

    model: str
    module: str
    nth: int
    kind: str
    line: int
    said: str

    @property
    def fails(self) -> bool:
        return "device" in self.said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    arguments(parser, seconds=1200)
    parser.add_argument("--each", type=int, default=8, help="mistakes in one model")
    parser.add_argument("--list", action="store_true", help="print each one that fails")
    parser.add_argument("--kept", type=Path, help="what the runs said, read and written")
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept = read(options.kept)
    for row in decided(chosen_subjects(options), kept, options.each, options.seconds):
        kept.append(row)
        if options.kept is not None:
            with options.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    report(kept, options.list)


def read(file: Path | None) -> list[Decided]:
    if file is None or not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    return [Decided(**json.loads(line)) for line in lines]


def decided(
    subjects: Iterable[Subject], kept: Iterable[Decided], each: int, seconds: float
) -> Iterator[Decided]:
    """What runs say of mistakes that were not run before."""
    done = {(row.module, row.nth) for row in kept}
    models = {row.model for row in kept}
    end = time.monotonic() + seconds
    for subject in subjects:
        if time.monotonic() > end:
            return
        if subject.name not in models:
            found = in_child(partial(of_model, subject, done, each), SECONDS * (each + 1)) or []
            done |= {(row.module, row.nth) for row in found}
            yield from found


def of_model(subject: Subject, done: set[tuple[str, int]], each: int) -> list[Decided]:
    ran = lines_run(subject)
    found = []
    for nth, mistake in chosen(ran, done, random.Random(subject.name), each):
        said = in_child(partial(outcome, subject, mistake), SECONDS) or "ends the process"
        name = module_of(mistake.path)
        found.append(Decided(subject.name, name, nth, mistake.kind, mistake.line, said[:120]))
    return found


def chosen(
    ran: set[tuple[str, int]], done: set[tuple[str, int]], chance: random.Random, most: int
) -> list[tuple[int, Mistake]]:
    """Mistakes in lines that ran, with their numbers in the file."""
    paths = [Path(each) for each in sorted({path for path, _ in ran})]
    possible = [
        (nth, mistake)
        for path in paths
        for nth, mistake in enumerate(mistakes(path, path.read_bytes()))
        if (str(path), mistake.line) in ran and (module_of(path), nth) not in done
    ]
    chance.shuffle(possible)
    return possible[:most]


def report(rows: Iterable[Decided], listed: bool) -> None:
    lint = Lint([rule() for code, rule in all_rules().items() if code.startswith(CODES)])
    made, failed, found, by_default = (Counter[str]() for _ in range(4))
    models: set[str] = set()
    for row in rows:
        models.add(row.model)
        made[row.kind] += 1
        if not row.fails:
            continue
        path = path_of(row.module)
        new = lint.new(list(mistakes(path, path.read_bytes()))[row.nth])
        failed[row.kind] += 1
        found[row.kind] += bool(new)
        by_default[row.kind] += any(shown for _, shown in new)
        if listed:
            codes = " ".join(f"{code}{'' if shown else ' (note)'}" for code, shown in sorted(new))
            print(f"{row.module}:{row.line} {codes or 'missed'} | {row.said[:70]}", flush=True)
    libraries = {row.module.partition(".")[0] for row in rows}
    print(f"{made.total()} mistakes in {len(models)} models of {', '.join(sorted(libraries))}")
    for kind in KINDS:
        print(
            f"{kind:24} {failed[kind]:4} of {made[kind]:4} fail; found {found[kind]:4}, "
            f"by default {by_default[kind]:4}"
        )


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
    """`transformers.models.bert.modeling_bert` of a file of an installed package."""
    root = next(Path(each) for each in sys.path if each and path.is_relative_to(each))
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(module: str) -> Path:
    inside = Path(*module.split("."))
    places = [Path(each) / inside for each in sys.path if each]
    found = (path for each in places for path in (each.with_suffix(".py"), each / "__init__.py"))
    return next(path for path in found if path.exists())


if __name__ == "__main__":
    main()
