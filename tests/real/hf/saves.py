"""One offloaded model, saved and used: what came of it, and what was said of it.

Also a program, `python -m tests.real.hf.saves FOLDER MODEL`, for releases of transformers other
than the installed one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from tensortrail.findings import Finding, Setting
from tensortrail.rules import all_rules
from tensortrail.tracer.reading.findings_of_run import findings
from tensortrail.tracer.reading.timeline import open_run
from tensortrail.tracer.recording.begin import begin
from tests.real.hf.models import halves, made

FORMS = ("disk", "cpu+disk")
SIZES = (None, "100KB", "200KB")


@dataclass
class Outcome:
    form: str
    size: str | None
    error: str
    """How the save failed."""
    loads: bool
    """What was saved loads, and is what it was."""
    codes: list[str]
    helps: dict[str, bool] = field(default_factory=dict)
    """Each setting that was told, and whether a save with it loads."""

    @property
    def is_sharded(self) -> bool:
        return self.size is not None


def outcomes(
    model: str,
    folder: Path,
    forms: tuple[str, ...] = FORMS,
    sizes: tuple[str | None, ...] = SIZES,
) -> Iterator[Outcome]:
    whole = made(model)
    whole.save_pretrained(folder / "source")
    for number, (form, size) in enumerate(product(forms, sizes)):
        place = folder / str(number)
        limit = {} if size is None else {"max_shard_size": size}
        found, error = _recorded_save(_offloaded(whole, folder, form), place, limit)
        loads = _is_same(whole, place / "saved")
        outcome = Outcome(form, size, error, loads, [each.code for each in found])
        for told, setting in _settings(found):
            again = _offloaded(whole, folder, form)
            mended = place / f"with {len(outcome.helps)}"
            _save(again, mended, {**limit, setting.name: value(setting, again)})
            outcome.helps[told] = _is_same(whole, mended)
        yield outcome


def _offloaded(whole: Any, folder: Path, form: str) -> Any:
    device_map = {"": "disk"} if form == "disk" else halves(whole)
    return type(whole).from_pretrained(
        folder / "source", device_map=device_map, offload_folder=str(folder / f"offload {form}")
    )


def _recorded_save(
    model: Any, place: Path, arguments: Mapping[str, Any]
) -> tuple[tuple[Finding, ...], str]:
    def save() -> None:
        model.save_pretrained(place / "saved", **arguments)

    return _recorded(place / "run", save)


def _recorded(run: Path, what: Callable[[], object]) -> tuple[tuple[Finding, ...], str]:
    running = begin(run)
    error = ""
    try:
        what()
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    finally:
        running.stop()
    assert not running.trouble, running.trouble
    rules = [rule() for rule in all_rules().values() if rule.default]
    judged = findings(open_run(run), rules)
    assert not judged.problems, judged.problems
    return judged.findings, error


def uses(model: str, folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """In each form: what is said of a forward, and of a weight read without its module."""
    import torch

    whole = made(model)
    whole.save_pretrained(folder / "source")
    for form in FORMS:

        def run(form: str = form) -> None:
            _offloaded(whole, folder, form)(input_ids=torch.tensor([[1, 2, 3]]))

        def read(form: str = form) -> None:
            weights = _offloaded(whole, folder, form).parameters()
            next(each for each in weights if each.is_meta).tolist()

        told = (_recorded(folder / f"{each.__name__} {form}", each)[0] for each in (run, read))
        ran, was_read = ([each.code for each in found] for found in told)
        yield form, ran, was_read


def _save(model: Any, place: Path, arguments: Mapping[str, Any]) -> None:
    try:
        model.save_pretrained(place, **arguments)
    except Exception as error:
        print(f"{place}: {type(error).__name__}: {error}", file=sys.stderr)


def _settings(found: tuple[Finding, ...]) -> Iterator[tuple[str, Setting]]:
    for finding in found:
        for setting in finding.settings:
            yield f"{finding.code} {setting.name}", setting


def value(setting: Setting, model: Any) -> Any:
    """What a call gets where this is its argument."""
    known = {"model": model}
    exec(setting.imports, known)
    return eval(setting.value, known)


def _is_same(whole: Any, folder: Path) -> bool:
    import torch

    try:
        again = type(whole).from_pretrained(folder).state_dict()
    except (OSError, RuntimeError, ValueError):
        return False
    weights = whole.state_dict()
    return set(weights) == set(again) and all(
        torch.equal(tensor, again[name]) for name, tensor in weights.items()
    )


def main() -> None:
    folder, model = sys.argv[1:]
    saved = [asdict(each) for each in outcomes(model, Path(folder, "saves"))]
    told = {"saves": saved, "uses": list(uses(model, Path(folder, "uses")))}
    print("OUTCOMES " + json.dumps(told))


if __name__ == "__main__":
    main()
