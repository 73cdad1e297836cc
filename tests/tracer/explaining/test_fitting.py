"""A known cause says nothing about libraries that the program has not loaded."""

from __future__ import annotations

from tensortrail.tracer.explaining.causes import all_causes
from tensortrail.tracer.explaining.fitting import ABOUT, fitting


def test_sentences_about_other_libraries_are_left_out() -> None:
    (cause,) = (each for each in all_causes() if each.name == "meta-tensor-copied")
    alone = fitting(cause, lambda module: module == "torch")
    whole = fitting(cause, lambda module: True)
    assert whole is not None
    assert (whole.cause, whole.advice) == (cause.cause, cause.advice)
    assert alone is None or "accelerate" not in alone.cause + alone.advice


def test_no_cause_names_a_library_that_is_not_there() -> None:
    names = [each for each in ABOUT if "." not in each]
    for cause in all_causes():
        alone = fitting(cause, lambda module: module == "torch")
        if alone is not None:
            text = f"{alone.cause} {alone.advice}"
            assert not [each for each in names if each in text], cause.name
            assert all(each.startswith("pytorch/pytorch") for each in alone.see), cause.name
