"""Runs every probe on an instance of its own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.isolated import can_isolate, each_survived
from tensortrail.doctor.subclass.probe import DoesNotApply, Make, Probe, Subject, Wrong
from tensortrail.doctor.subclass.uses import all_uses
from tensortrail.doctor.subclass.words import CannotMake, Examination, Row, Verdict
from tensortrail.rules.shared.sizes import dimensions

NEEDS_GPU = (
    "not compiled with CUDA", "No CUDA GPUs", "Found no NVIDIA driver", "CUDA driver",
    "accelerator device when none is available", "Storage device not recognized: cuda",
)  # fmt: skip


def examine(make: Make, uses: Sequence[str] = ()) -> Examination:
    """What the class of the tensors that `make` gives does in each use; all uses without any."""
    subject, sample = _subject(make)
    asked = [
        (use, probe)
        for use, probes in all_uses().items()
        for probe in probes
        if not uses or any(each.lower() in use.lower() for each in uses)
    ]

    def lost(number: int, fate: str) -> Row:
        use, probe = asked[number]
        return Row(use, probe.op, Verdict.RAISES, fate, probe.breaks, probe.codes)

    isolate = can_isolate()
    with _examining():
        rows = each_survived(
            [partial(_tried, *each, subject, isolate) for each in asked], lost, isolate
        )
    kind = subject.kind
    name = f"{kind.__module__}.{kind.__qualname__}"
    return Examination(name, _told(sample), _versions(kind), tuple(rows))


def _subject(make: Make) -> tuple[Subject, torch.Tensor]:
    first = Subject(make, torch.Tensor).tensor()
    second = Subject(make, torch.Tensor).tensor()
    if type(first) in looks.PLAIN:
        raise CannotMake("it gave a plain torch.Tensor: there is no subclass to examine")
    if type(second) is not type(first):
        raise CannotMake(
            f"it gave a {type(first).__qualname__} and then a {type(second).__qualname__}"
        )
    if first is second or looks.shared(first, second):
        raise CannotMake("it must make a new tensor at every call: probes write into what they get")
    return Subject(make, type(first), first.device.type), first


def _tried(use: str, probe: Probe, subject: Subject, isolated: bool) -> Row:
    if probe.deadly and not isolated:
        reason = "may kill the process, and cannot be tried in one of its own here"
        return Row(use, probe.op, Verdict.NOT_APPLICABLE, reason)
    try:
        with torch.no_grad():
            probe.run(subject)
    except (DoesNotApply, CannotMake) as reason:
        return Row(use, probe.op, Verdict.NOT_APPLICABLE, str(reason))
    except Wrong as wrong:
        codes = (wrong.code, *probe.codes) if wrong.code else probe.codes
        return Row(
            use, probe.op, wrong.verdict, wrong.told, probe.breaks, tuple(dict.fromkeys(codes))
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:  # a CheckpointException is no Exception
        error = _cause(raised)
        told = _error(error)
        if any(words in str(error) for words in NEEDS_GPU):
            return Row(use, probe.op, Verdict.NOT_APPLICABLE, f"needs a GPU ({told})")
        return Row(use, probe.op, Verdict.RAISES, told, probe.breaks, probe.codes)
    return Row(use, probe.op, Verdict.HANDLED)


@contextmanager
def _examining() -> Iterator[None]:
    """Fresh memory is filled with a pattern, so that memory nobody wrote is known by it."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)


def _cause(raised: BaseException) -> BaseException:
    """What went wrong on this rank or in the compiler, where another exception hides it."""
    inner = getattr(raised, "inner_exception", None)
    if isinstance(inner, BaseException):
        return inner
    failures = getattr(raised, "failures", None)
    if isinstance(failures, dict) and failures:
        return next(iter(failures.values()))[0]  # type: ignore[no-any-return]
    return raised


def _error(error: BaseException) -> str:
    """What matters first: the operation that lacks, the class that is not trusted."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    line = next((each for each in lines if "Unsupported global" in each), lines[0])
    line = line.partition(". Please use")[0]
    found = re.search(r"aten\.\w+", line) if isinstance(error, NotImplementedError) else None
    return f"{type(error).__name__}{f' ({found[0]})' if found else ''}: {line[:200]}"


def _told(sample: torch.Tensor) -> str:
    shape = dimensions(sample.shape)
    inner = ", ".join(looks.inner_tensors(sample))
    dtype = str(sample.dtype).removeprefix("torch.")
    return f"{dtype} {shape} on {sample.device}" + (f", made of {inner}" if inner else "")


def _versions(kind: type) -> str:
    from importlib.metadata import PackageNotFoundError, version

    own = kind.__module__.partition(".")[0]
    told = [f"torch {torch.__version__}"]
    if own != "torch":
        try:
            told.insert(0, f"{own} {version(own.replace('_', '-'))}")
        except PackageNotFoundError:
            told.insert(0, own)
    return ", ".join(told)
