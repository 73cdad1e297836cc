"""Inferred places beside where the tensors of rehearsed runs really were, name by name.

    python benchmarks/places_agree.py [--only WORD] [--seconds N] [--each N] [--show]
        [--beside FOLDER...]

Each model is built from a tiny configuration, moved to a simulated GPU and called once. Whenever
a line of its file has given a name to a tensor, the device is compared with the place that was
inferred for that name at that line. An inference of several places agrees if one of them does.
"""

from __future__ import annotations

import argparse
import ast
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from tiny_models import Subject, arguments, chosen_subjects, on_a_simulated_gpu

from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.rules.places import Held, Place, What, Where

PARTS = ("transformers/models/", "transformers/integrations/", "transformers/masking_utils",
         "transformers/modeling_", "diffusers/models/", "timm/", "torchvision/",
         "torch/nn/modules/", "torch/nn/functional", "generated_")  # fmt: skip
"""Files are compared whose path holds one of these."""


class Tally:
    """Counts of one run; what was inferred is asked file by file."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.functions: set[str] = set()
        self._project = open_project()
        self._outer: dict[str, dict[int, ast.FunctionDef]] = {}
        self._modules: dict[str, PythonModule] = {}
        self._names: dict[ast.FunctionDef, dict[int, list[tuple[str, Held]]]] = {}

    def inferred(self, path: str, line: int) -> list[tuple[str, Held]]:
        """The names a line binds and what is believed of them."""
        if path not in self._outer:
            module = PythonModule(path, Path(path).read_bytes(), self._project)
            self._modules[path] = module
            self._outer[path] = {
                number: function
                for function in module.nodes(ast.FunctionDef)
                if module.tree.outermost_function_of(function) is function
                for number in range(function.lineno, (function.end_lineno or 0) + 1)
            }
        function = self._outer[path].get(line)
        if function is None:
            return []
        if function not in self._names:
            by_line: dict[int, list[tuple[str, Held]]] = {}
            for node, held in self._modules[path].places(function).seen.items():
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    by_line.setdefault(node.lineno, []).append((node.id, held))
            self._names[function] = by_line
        return self._names[function].get(line, [])

    def traced(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        path = frame.f_code.co_filename
        if event != "call" or not any(part in path for part in PARTS):
            return None
        self.functions.add(f"{path}:{frame.f_code.co_firstlineno}")
        given = {name: where_is(each) for name, each in frame.f_locals.items()}
        given["self"] = where_module_is(frame.f_locals.get("self"))
        last = frame.f_lineno

        def line(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
            nonlocal last
            for name, held in self.inferred(path, last):
                device = where_is(frame.f_locals.get(name))
                if isinstance(frame.f_locals.get(name), torch.Tensor) and event != "exception":
                    self.compare(f"{path}:{last}: {name}", held, device, given)
            last = frame.f_lineno
            return line

        return line

    def compare(self, what: str, held: Held, device: str, given: dict[str, str]) -> None:
        if held.what is not What.TENSOR or not held.places:
            self.counts["unknown"] += 1
            return
        expected = {expectation(each, given) for each in held.places}
        if "" in expected and device not in expected:
            self.counts["unknown"] += 1
        elif device in expected:
            self.counts["agrees"] += 1
        else:
            self.counts["disagrees"] += 1
            said = " or ".join(each.text for each in held.in_order)
            self.wrong[f"{what} is on {device}, inferred {said}"] += 1


def expectation(place: Place, given: dict[str, str]) -> str:
    """The device a place stands for in this call; "" if that cannot be said."""
    if place.where in (Where.DEFAULT, Where.HOST, Where.STAYS):
        return "cpu"
    if place.where is Where.SELF:
        return given["self"]
    if place.where is Where.LITERAL:
        return place.subject
    if place.where in (Where.OF, Where.DEVICE):
        return given.get(place.subject, "")
    return ""


def where_is(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return str(value.device.type)
    return value.type if isinstance(value, torch.device) else ""


def where_module_is(module: object) -> str:
    if not isinstance(module, torch.nn.Module) or "_parameters" not in vars(module):
        return ""  # no module, or one that is being set up
    tensors = [*module.parameters(), *module.buffers()]
    return where_is(tensors[0]) if tensors else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    arguments(parser, seconds=3600)
    parser.add_argument("--each", type=int, default=20, help="CPU seconds for one model")
    parser.add_argument("--show", action="store_true", help="print each disagreement")
    options = parser.parse_args()
    tally, ran, skipped = Tally(), Counter[str](), Counter[str]()
    signal.signal(signal.SIGPROF, too_slow)
    for subject in chosen_subjects(options):
        if time.process_time() > options.seconds:
            break
        if sum(ran.values()) % 25 == 24:
            report(tally, ran, show=False)
        before = sum(tally.counts.values())
        signal.setitimer(signal.ITIMER_PROF, options.each)
        try:
            run(subject, tally)
        except Exception as error:  # the settings do not fit every model
            said = str(error).replace("\n", " ")[:90]
            print(f"{subject.name}: {type(error).__name__}: {said}", file=sys.stderr)
            skipped[type(error).__name__] += 1
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if sum(tally.counts.values()) > before:
            ran[subject.name.partition(" ")[0]] += 1
    report(tally, ran, options.show)
    reasons = ", ".join(f"{name} {count}" for name, count in skipped.most_common())
    print(f"{skipped.total()} did not run to the end: {reasons or 'none'}")


def report(tally: Tally, ran: Counter[str], show: bool) -> None:
    counts, known = tally.counts, tally.counts["agrees"] + tally.counts["disagrees"]
    libraries = ", ".join(f"{count} of {name}" for name, count in ran.items())
    print(f"{sum(ran.values())} modules ({libraries}), {len(tally.functions)} functions ran")
    print(f"known {known} of {sum(counts.values())} ({100 * known / sum(counts.values()):.1f} %)")
    print(f"agree {counts['agrees']} of the known ({100 * counts['agrees'] / known:.2f} %)")
    if show:
        for said, count in tally.wrong.most_common():
            print(f"{count:5} {said}")


def run(subject: Subject, tally: Tally) -> None:
    with on_a_simulated_gpu():
        model, inputs = subject.on_gpu()
        sys.settrace(tally.traced)
        try:
            model(**inputs)
        finally:
            sys.settrace(None)


def too_slow(number: int, frame: object) -> None:
    raise TimeoutError("took too long")


if __name__ == "__main__":
    main()
